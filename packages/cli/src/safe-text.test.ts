import { styleText } from "node:util";
import { expect, it } from "vitest";
import { showUnsafeInColours } from "./safe-text.ts";

const controlCharacter = "\u001b";

it("safe text keeps this command's colours, on a terminal only", () => {
  const styles = ["dim", "red", "green", "yellow", "cyan"] as const;
  for (const style of styles) {
    const text = styleText(style, "word", { validateStream: false });
    expect(showUnsafeInColours(text, true)).toBe(text);
    expect(showUnsafeInColours(text, false)).toBe("word");
  }
});

it.each(["8", "30", "7", "5", "47", "0", "1;8", "38;5;0", ""])(
  "safe text shows terminal control code %s, which could hide words, as text",
  (code) => {
    for (const seesColours of [true, false]) {
      const shown = showUnsafeInColours(`${controlCharacter}[${code}mhidden`, seesColours);
      expect(shown).toBe(`\\u{1b}[${code}mhidden`);
    }
  },
);
