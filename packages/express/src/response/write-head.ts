import { type ServerResponse, validateHeaderValue } from "node:http";

/**
 * Applies `response.writeHead(status, message?, headers?)`, in all of its forms, without sending:
 * status, message and headers are set on the response. Throws as Node does.
 */
export function applyHead(response: ServerResponse, head: readonly unknown[]): void {
  const [status, second, third] = head;
  const statusCode = Math.trunc(Number(status));
  if (!(statusCode >= 100 && statusCode <= 999)) {
    throw new RangeError(`Invalid status code: ${String(status)}`);
  }
  const message = typeof second === "string" ? second : undefined;
  if (message !== undefined) validateHeaderValue("statusMessage", message);
  response.statusCode = statusCode;
  if (message !== undefined) response.statusMessage = message;
  for (const [name, values] of readHeaders(message === undefined ? (second ?? third) : third)) {
    response.setHeader(name, values);
  }
}

type HeaderValue = number | string | string[];

/** An object, a flat list of names and values, or a list of pairs. A list may repeat a name. */
function readHeaders(headers: unknown): Iterable<[string, HeaderValue]> {
  if (typeof headers !== "object" || headers === null) return [];
  if (!Array.isArray(headers)) {
    return Object.entries(headers).map(([name, value]) => [name, toValue(value)]);
  }
  const flat: unknown[] = headers.every(Array.isArray) ? headers.flat() : headers;
  if (flat.length % 2 !== 0) throw new TypeError("The list of headers has a name without a value");
  const byName = new Map<string, [string, HeaderValue]>();
  for (let index = 0; index < flat.length; index += 2) {
    const name = String(flat[index]);
    const value = toValue(flat[index + 1]);
    const known = byName.get(name.toLowerCase());
    byName.set(name.toLowerCase(), [name, known === undefined ? value : join(known[1], value)]);
  }
  return byName.values();
}

function join(first: HeaderValue, second: HeaderValue): string[] {
  return [first, second].flatMap((value) => (Array.isArray(value) ? value : [String(value)]));
}

function toValue(value: unknown): HeaderValue {
  if (Array.isArray(value)) return value.map(String);
  if (typeof value === "number" || typeof value === "string") return value;
  if (value === undefined) throw new TypeError("A header has no value");
  return String(value);
}
