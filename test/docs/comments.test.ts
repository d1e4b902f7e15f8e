import { expect, it } from "vitest";
import { passagesOfComments, passagesOfDocuments, readComments } from "./written-text.ts";

const maxWords = 20;
/** Its dated notes stay as they were written. */
const history = "bench/LOG.md";

it("comments wrap at 100 columns", () => {
  const lines = readComments();
  const wide = lines.filter(({ line, text }) => text !== undefined && [...line].length > 100);
  expect(lines.length).toBeGreaterThan(100_000);
  expect(wide.map(({ path, number }) => `${path}:${number}`)).toEqual([]);
});

it(`sentences of comments and documents have at most ${maxWords} words`, () => {
  const passages = [...passagesOfComments(), ...passagesOfDocuments()];
  const long = passages
    .filter(({ path }) => path !== history)
    .flatMap(({ path, number, text }) =>
      sentencesOf(text)
        .filter((sentence) => countWords(sentence) > maxWords)
        .map((sentence) => `${path}:${number} ${sentence}`),
    );
  expect(passages.length).toBeGreaterThan(10_000);
  expect(long).toEqual([]);
});

/** Code and addresses are a word each. A colon ends a sentence: a list follows it. */
function sentencesOf(text: string): string[] {
  return text
    .replace(/`[^`]*`|\{@link [^}]*\}|https?:\S+/g, "code")
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll("**", "")
    .split(/(?<=[.!?;:])["”)]?\s+/);
}

const countWords = (sentence: string) =>
  sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
