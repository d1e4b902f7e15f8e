import * as z from "zod";

/**
 * Untrusted text about an outcome. Text beyond the limit is cut and not refused: a long explanation
 * must not hide whether money moved.
 */
export function remarkSchema(maxLength: number) {
  return z.string().transform((text) => (text.length <= maxLength ? text : cut(text, maxLength)));
}

/** Cuts between characters, never inside a surrogate pair. */
function cut(text: string, maxLength: number): string {
  return text.slice(0, maxLength).replace(/[\ud800-\udbff]$/, "");
}
