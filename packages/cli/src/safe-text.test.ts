import { styleText } from "node:util";
import { expect, it } from "vitest";
import { showUnsafeInColours } from "./safe-text.ts";

const controlCharacter = "\u001b";

it("leaves the colours of this command, on a terminal alone", () => {
  const styles = ["dim", "red", "green", "yellow", "cyan"] as const;
  for (const style of styles) {
    const text = styleText(style, "word", { validateStream: false });
    expect(showUnsafeInColours(text, true)).toBe(text);
    expect(showUnsafeInColours(text, false)).toBe("word");
  }
});

it.each(["8", "30", "7", "5", "47", "0", "1;8", "38;5;0", ""])(
  "shows code %s of a terminal, which could hide words, as text",
  (code) => {
    for (const seesColours of [true, false]) {
      const shown = showUnsafeInColours(`${controlCharacter}[${code}mhidden`, seesColours);
      expect(shown).toBe(`\\u{1b}[${code}mhidden`);
    }
  },
);
