import { expect, it } from "vitest";
import type { CodeBlock } from "./code-block.ts";
import { typeCheck } from "./type-check.ts";

const block = (text: string, more: Partial<CodeBlock> = {}): CodeBlock => ({
  document: "a.md",
  line: 10,
  language: "ts",
  text,
  given: "",
  continued: undefined,
  ...more,
});

it("a type error has its line in the document, after preludes and continued blocks", () => {
  const first = block("const a = 1;", { given: "declare const b: number;" });
  const second = block("\nconst c: string = a + b + d;", {
    line: 20,
    given: "declare const d: number;\n",
    continued: first,
  });
  const script = block('import { nothing } from "node:fs";\nconst a = null.a;', {
    line: 30,
    language: "js",
  });
  const fragment = block("budget: {\n  a: [1], b: 2,\n}", { line: 40 });
  const complaints = typeCheck([first, second, script, fragment]);
  expect(complaints.slice(0, 2)).toEqual([
    "a.md:21: Type 'number' is not assignable to type 'string'.",
    `a.md:30: Module '"node:fs"' has no exported member 'nothing'.`,
  ]);
  expect(complaints.slice(2).join()).toMatch(/^a.md:41: /);
});
