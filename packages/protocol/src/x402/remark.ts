import * as z from "zod";

/**
 * Words of a stranger about an outcome. What is too long is cut and not refused: whether money
 * moved must not become unreadable because somebody explains it at length.
 */
export function remarkSchema(maxLength: number) {
  return z.string().transform((text) => (text.length <= maxLength ? text : cut(text, maxLength)));
}

/** Cuts between characters, never inside a surrogate pair. */
function cut(text: string, maxLength: number): string {
  return text.slice(0, maxLength).replace(/[\ud800-\udbff]$/, "");
}
