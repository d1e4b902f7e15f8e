/** One message of a stream of server-sent events (WHATWG HTML, section "Server-sent events"). */
export interface StreamMessage {
  /** What the reader sends as Last-Event-ID when it comes back. Without `data` it is only noted. */
  id?: number;
  event?: "transfer" | "retraction" | "gap";
  data?: unknown;
  /** How long to wait before coming back. */
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
