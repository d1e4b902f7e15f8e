import type { Header } from "./observer.ts";

/** Headers of one connection (RFC 9110, 7.6.1): a proxy has its own. */
const hopByHop = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "transfer-encoding",
  "upgrade",
]);

/** Pairs of Node's flat list of names and values. */
export function pairsOf(rawHeaders: readonly string[]): Header[] {
  return Array.from({ length: rawHeaders.length / 2 }, (_, index) => {
    const name = rawHeaders[2 * index] ?? "";
    return [name, rawHeaders[2 * index + 1] ?? ""] as const;
  });
}

/** The headers that travel on: without those of the connection, and those that it names. */
export function endToEndHeaders(headers: readonly Header[]): Header[] {
  const named = valuesOf(headers, "connection").flatMap((value) =>
    value.split(",").map((name) => name.trim().toLowerCase()),
  );
  return headers.filter(([name]) => {
    const key = name.toLowerCase();
    return !hopByHop.has(key) && !named.includes(key);
  });
}

/** All values of a header, in their order. */
export function valuesOf(headers: readonly Header[], wanted: string): string[] {
  const key = wanted.toLowerCase();
  return headers.flatMap(([name, value]) => (name.toLowerCase() === key ? [value] : []));
}

/** The value of a header; repeated ones are joined, as `fetch` joins them. */
export function headerOf(headers: readonly Header[], wanted: string): string | undefined {
  const values = valuesOf(headers, wanted);
  return values.length === 0 ? undefined : values.join(", ");
}

/** Headers in the form that Node's client takes: repeated ones as a list under their first name. */
export function toOutgoingHeaders(headers: readonly Header[]): Map<string, string | string[]> {
  const names = new Map<string, string>();
  const outgoing = new Map<string, string | string[]>();
  for (const [name, value] of headers) {
    const first = names.get(name.toLowerCase()) ?? name;
    names.set(name.toLowerCase(), first);
    const before = outgoing.get(first);
    outgoing.set(first, before === undefined ? value : [before, value].flat());
  }
  return outgoing;
}
