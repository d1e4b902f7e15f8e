import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { readDocument, root } from "./code-block.ts";

const documents = [
  {
    noun: "MPP",
    document: "packages/express/src/wires/mpp/README.md",
    count: 23,
    withoutTest: [],
  },
  {
    noun: "channels",
    document: "packages/facilitator/src/schemes/batch-settlement/README.md",
    count: 25,
    withoutTest: [],
  },
].map((each) => ({ ...each, rows: readRows(each.document) }));

/** The rows of a page's attacks: their numbers, and the tests that they name. */
function readRows(document: string) {
  return readDocument(document)
    .split("\n")
    .flatMap((line) => {
      const [, number = "", , tests = ""] = line.split("|").map((cell) => cell.trim());
      if (!/^\d+$/.test(number)) return [];
      const named = [...tests.matchAll(/`([^`]+\.test\.ts)`: "([^"]+)"/g)];
      return [{ document, number: Number(number), tests, named }];
    });
}

it.each(documents)("the attacks on $noun are numbered from 1 to $count", ({ rows, count }) => {
  expect(rows.map(({ number }) => number)).toEqual(
    Array.from({ length: count }, (_, at) => at + 1),
  );
});

const tested = documents.flatMap(({ noun, rows, withoutTest }) =>
  rows.flatMap((row) => (withoutTest.some((each) => each === row.number) ? [] : { noun, ...row })),
);

it.each(tested)(
  "attack $number on $noun has the tests that its row names",
  ({ document, tests, named }) => {
    expect(named.map(([text]) => text).join("; ")).toBe(tests);
    for (const [, file = "", name = ""] of named) {
      const beside = join(root, dirname(document), file);
      const source = readFileSync(existsSync(beside) ? beside : join(root, file), "utf8");
      expect(source).toContain(name);
    }
  },
);
