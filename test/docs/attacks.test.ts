import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { readDocument, root } from "./code-block.ts";

const document = "packages/express/src/wires/mpp/README.md";

/** The rows of attacks on MPP: their numbers, and the tests that they name. */
const rows = readDocument(document)
  .split("\n")
  .flatMap((line) => {
    const [, number = "", , tests = ""] = line.split("|").map((cell) => cell.trim());
    if (!/^\d+$/.test(number)) return [];
    const named = [...tests.matchAll(/`([^`]+\.test\.ts)`: "([^"]+)"/g)];
    return [{ number: Number(number), tests, named }];
  });

it("the attacks on MPP are numbered from 1 to 23", () => {
  expect(rows.map(({ number }) => number)).toEqual(Array.from({ length: 23 }, (_, at) => at + 1));
});

it.each(rows)("attack $number on MPP has the tests that its row names", ({ tests, named }) => {
  expect(named.map(([text]) => text).join("; ")).toBe(tests);
  for (const [, file = "", name = ""] of named) {
    const beside = join(root, dirname(document), file);
    const source = readFileSync(existsSync(beside) ? beside : join(root, file), "utf8");
    expect(source).toContain(name);
  }
});
