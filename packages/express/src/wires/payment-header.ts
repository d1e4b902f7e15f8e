import type { IncomingMessage } from "node:http";

/**
 * Counts the lines of a header whose value holds no comma. Node joins the values of a header that
 * is sent twice with commas.
 *
 * @param name in lower case
 */
export function countHeader(request: IncomingMessage, name: string): number {
  const value = request.headers[name];
  if (value === undefined) return 0;
  return value.includes(",") ? (distinctHeadersOf(request)[name]?.length ?? 0) : 1;
}

/**
 * Removes a header from every form in which Node shows it.
 *
 * @param name in lower case
 */
export function removeHeader(request: IncomingMessage, name: string): void {
  const { rawHeaders } = request;
  Reflect.deleteProperty(request.headers, name);
  Reflect.deleteProperty(distinctHeadersOf(request), name);
  for (let index = rawHeaders.length - 2; index >= 0; index -= 2) {
    if (String(rawHeaders[index]).toLowerCase() === name) rawHeaders.splice(index, 2);
  }
}

/**
 * The headers as lists. Node makes them when they are first read, and counts on every raw one. Its
 * versions before 20.20.2, 22.22.2 and 24.14.1 throw at a header such as `__proto__`. A request
 * keeps those lists that are made here.
 */
function distinctHeadersOf(request: IncomingMessage): IncomingMessage["headersDistinct"] {
  try {
    return request.headersDistinct;
  } catch {
    const { rawHeaders } = request;
    const lists: IncomingMessage["headersDistinct"] = Object.create(null);
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const name = String(rawHeaders[index]).toLowerCase();
      const list = lists[name] ?? [];
      list.push(String(rawHeaders[index + 1]));
      lists[name] = list;
    }
    request.headersDistinct = lists;
    return lists;
  }
}
