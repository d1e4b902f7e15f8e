import { replaceUnsafe } from "../safe-text.ts";

const maxCharacters = 200;
/** Marks on one character; more of them run over the lines above and below. */
const manyMarks = /(\p{M}{2})\p{M}+/gu;

/**
 * The words of a seller, a token or a node, in one line and without characters that steer a
 * terminal.
 */
export function printable(text: string): string {
  const characters = [...printableWhole(text)];
  if (characters.length <= maxCharacters) return characters.join("");
  return `${characters.slice(0, maxCharacters).join("")}…`;
}

/** The same in full: for terms that a person agrees to. */
export function printableWhole(text: string): string {
  return replaceUnsafe(text).replace(manyMarks, "$1").trim();
}
