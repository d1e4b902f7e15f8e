/** Members whose values are secrets, or as good as money. */
const secret = /signature|secret|password|seed|private|credential|^key$/i;
const maxDepth = 12;

/**
 * JSON of a value, without secrets and not longer than a bound. A longer one is cut, and is the
 * member `cut` of an object then.
 */
export function redact(value: unknown, maxLength: number): string {
  const text = JSON.stringify(without(value, 0)) ?? "null";
  if (text.length <= maxLength) return text;
  const cut = JSON.stringify({ cut: text.slice(0, maxLength) });
  // Half a character at the end would be no text for a database.
  return Buffer.from(cut).toString();
}

function without(value: unknown, depth: number): unknown {
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object" || value === null) return value;
  if (depth > maxDepth) return "…";
  if (Array.isArray(value)) return value.map((each) => without(each, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      secret.test(name) ? "…" : without(member, depth + 1),
    ]),
  );
}
