/**
 * Searches whose time grows with the length of the text alone. A regular expression that reads to
 * the end from each character would stop the proxy for seconds at 64 KiB.
 */

const separator = /[\s"',;&<>]/;

/** A text without its last word, which may be cut. */
export function withoutLastWord(text: string): string {
  let end = text.length;
  while (end > 0 && !separator.test(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}

/**
 * Replaces values of parameters, as queries, fragments and forms have them. A value with a `?` may
 * be a URL with parameters of its own.
 *
 * @param replace returns a parameter's new value, or `undefined` where it stays
 */
export function replaceParameters(
  text: string,
  replace: (name: string, value: string) => string | undefined,
): string {
  return text.replace(/[^&#]+/g, (segment) => {
    let from = 0;
    for (;;) {
      const equals = segment.indexOf("=", from);
      if (equals === -1) return segment;
      const begin = Math.max(from, segment.lastIndexOf("?", equals) + 1);
      const value = segment.slice(equals + 1);
      const other = begin < equals ? replace(segment.slice(begin, equals), value) : undefined;
      if (other !== undefined) return segment.slice(0, equals + 1) + other;
      const next = segment.indexOf("?", equals);
      if (next === -1) return segment;
      from = next + 1;
    }
  });
}

/** Characters of JSON Web Tokens, and the points between their parts. */
const tokenRun = /[\w.-]{21,}/g;
/** The first part is base64url of an object. */
const tokenHead = /(?:^|-)eyJ(?=[\w-]{8})/;

/** Replaces JSON Web Tokens (RFC 7519). */
export function replaceWebTokens(text: string, replacement: string): string {
  return text.replace(tokenRun, (run) => {
    const parts = run.split(".");
    const kept: string[] = [];
    for (let index = 0; index < parts.length; index += 1) {
      const part = parts[index] ?? "";
      const head = tokenHead.exec(part);
      const isToken = (parts[index + 1]?.length ?? 0) >= 8 && parts[index + 2] !== undefined;
      if (head === null || !isToken) {
        kept.push(part);
        continue;
      }
      const before = part.slice(0, head.index + head[0].length - "eyJ".length);
      kept.push(before + replacement);
      index += 2;
    }
    return kept.join(".");
  });
}
