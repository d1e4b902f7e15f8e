/** One message of a stream of server-sent events (WHATWG HTML, section "Server-sent events"). */
export interface StreamMessage {
  /**
   * Sent back by the reader as Last-Event-ID when it reconnects. Without `data` it is only noted.
   */
  id?: number;
  event?: "transfer" | "retraction" | "gap";
  data?: unknown;
  /** Delay before a reconnect. */
  retryMs?: number;
}

/** A message as text. JSON has no raw line ends, so one data line is enough. */
export function encodeEvent({ id, event, data, retryMs }: StreamMessage): string {
  const lines = [
    ...(retryMs === undefined ? [] : [`retry: ${retryMs}`]),
    ...(id === undefined ? [] : [`id: ${id}`]),
    ...(event === undefined ? [] : [`event: ${event}`]),
    ...(data === undefined ? [] : [`data: ${JSON.stringify(data)}`]),
  ];
  return `${lines.join("\n")}\n\n`;
}
