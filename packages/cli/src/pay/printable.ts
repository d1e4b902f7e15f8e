const mostCharacters = 200;

/** A seller's words, without what would steer a terminal. */
export function printable(text: string): string {
  const cleaned = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ").trim();
  return cleaned.length > mostCharacters ? `${cleaned.slice(0, mostCharacters)}…` : cleaned;
}
