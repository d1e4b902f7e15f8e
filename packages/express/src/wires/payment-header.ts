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
  return value.includes(",") ? (request.headersDistinct[name]?.length ?? 0) : 1;
}

/**
 * Removes a header from every form in which Node shows it.
 *
 * @param name in lower case
 */
export function removeHeader(request: IncomingMessage, name: string): void {
  const { rawHeaders } = request;
  Reflect.deleteProperty(request.headers, name);
  Reflect.deleteProperty(request.headersDistinct, name);
  for (let index = rawHeaders.length - 2; index >= 0; index -= 2) {
    if (String(rawHeaders[index]).toLowerCase() === name) rawHeaders.splice(index, 2);
  }
}
