import type { ServerResponse } from "node:http";

type Method = (...args: unknown[]) => unknown;

/** Methods that carry nothing of an answer, and go out while it is held. */
const interim = new Set<unknown>([
  "HTTP/1.1 100 Continue\r\n\r\n",
  "HTTP/1.1 102 Processing\r\n\r\n",
]);

/**
 * Wraps the methods by which Node's own methods of a response store its head and write to its
 * connection. With these wrappers, a call of `ServerResponse.prototype.write` on a held response
 * writes nothing: `onBypass` is called instead. They throw nothing, since a stream that pipes would
 * not catch it.
 */
export function guardConnection(
  response: ServerResponse,
  onBypass: () => void,
): Record<"_storeHeader" | "_send" | "_writeRaw", Method> {
  const writeRaw: unknown = Reflect.get(response, "_writeRaw");

  function block(): boolean {
    onBypass();
    return true;
  }

  return {
    _storeHeader: block,
    _send: block,
    _writeRaw: (...args) =>
      typeof writeRaw === "function" && interim.has(args[0])
        ? Reflect.apply(writeRaw, response, args)
        : block(),
  };
}
