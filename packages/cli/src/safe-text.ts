/**
 * Characters that steer a terminal, take no room, or pass for an ordinary space. They are controls
 * (C0, C1), formats (bidirectional, zero-width), line separators, default ignorables, unassigned
 * and private ones. Others are further spaces and the blank of Braille.
 */
const unsafe = /[\p{C}\p{Z}\p{DI}\u2800]/gu;

/** Replaces each run of unsafe characters, ordinary spaces included, by one space. */
export function replaceUnsafe(text: string): string {
  return text.replace(/[\p{C}\p{Z}\p{DI}\u2800]+/gu, " ");
}

/** Shows unsafe characters as `\u{1b}`; lines, tabs and ordinary spaces stay. */
export function showUnsafe(text: string): string {
  return text
    .replaceAll("\r\n", "\n")
    .replace(unsafe, (character) =>
      " \n\t".includes(character) ? character : `\\u{${character.codePointAt(0)?.toString(16)}}`,
    );
}

/** Escapes unsafe characters in JSON, which parses to the same value. */
export function escapeUnsafeInJson(json: string): string {
  return json.replace(unsafe, (character) => {
    if (character === " " || character === "\n") return character;
    const units = Array.from({ length: character.length }, (_, index) =>
      character.charCodeAt(index).toString(16).padStart(4, "0"),
    );
    return units.map((unit) => `\\u${unit}`).join("");
  });
}

/** The codes of `paint`, and no other: some hide text. */
const colour = new RegExp(`(${String.fromCharCode(0x1b)}\\[(?:2|22|3[1236]|39)m)`);

/** As `showUnsafe`, but colours stay on a terminal with colours, and go elsewhere. */
export function showUnsafeInColours(text: string, seesColours: boolean): string {
  return text
    .split(colour)
    .map((part, index) => {
      if (index % 2 === 0) return showUnsafe(part);
      return seesColours ? part : "";
    })
    .join("");
}
