import { badRequest } from "./api-error.ts";

/**
 * The query string as flat text values, the same under any query parser that an app may have
 * configured.
 * @throws ApiError 400 if a parameter is there twice, since the intended one is unknown
 */
export function readQueryString(url: string): Record<string, string> {
  const start = url.indexOf("?");
  const values = new Map<string, string>();
  if (start < 0) return {};
  for (const [name, value] of new URLSearchParams(url.slice(start + 1))) {
    if (values.has(name)) throw badRequest(`${name}: is there more than once`);
    values.set(name, value);
  }
  return Object.fromEntries(values);
}
