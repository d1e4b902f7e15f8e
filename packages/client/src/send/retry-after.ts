/**
 * The delay of a `Retry-After` header, in milliseconds from `now`; `undefined` without a readable
 * one.
 */
export function readRetryAfter(headers: Headers, now: number): number | undefined {
  const value = headers.get("Retry-After")?.trim();
  if (!value) return undefined;
  if (/^[0-9]{1,9}$/.test(value)) return Number(value) * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
