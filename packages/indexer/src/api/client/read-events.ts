/** A message of a stream of server-sent events. */
export interface ReceivedEvent {
  id: string | undefined;
  /** `message` where none is named. */
  event: string;
  data: string;
}

// One transfer is under a kilobyte; a stream with an endless message is not from this service.
const maxMessage = 1_000_000;

/**
 * Reads a stream of server-sent events by the WHATWG HTML standard. It allows any line ends,
 * comments, and fields that are spread over chunks. Messages without data are returned too, with
 * `data` empty, since they move the id.
 * @throws RangeError on a message without end
 */
export async function* readEvents(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<ReceivedEvent> {
  const decoder = new TextDecoder();
  let rest = "";
  let lines: string[] = [];
  for await (const chunk of chunks) {
    rest += decoder.decode(chunk, { stream: true });
    if (rest.length > maxMessage) throw new RangeError("A message of the stream has no end.");
    // A carriage return at the end may be half a line end.
    const whole = rest.endsWith("\r") ? rest.slice(0, -1) : rest;
    const parts = whole.split(/\r\n|\n|\r/);
    rest = (parts.pop() ?? "") + rest.slice(whole.length);
    for (const line of parts) {
      if (line !== "") {
        lines.push(line);
        continue;
      }
      const message = readMessage(lines);
      lines = [];
      if (message !== undefined) yield message;
    }
  }
}

function readMessage(lines: readonly string[]): ReceivedEvent | undefined {
  const message: ReceivedEvent = { id: undefined, event: "message", data: "" };
  const data: string[] = [];
  for (const line of lines) {
    const [, field, value = ""] = /^([^:]+)(?:: ?(.*))?$/.exec(line) ?? [];
    if (field === "id") message.id = value;
    else if (field === "event") message.event = value;
    else if (field === "data") data.push(value);
  }
  if (message.id === undefined && data.length === 0) return undefined;
  return { ...message, data: data.join("\n") };
}
