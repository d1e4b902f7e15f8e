import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { expect, it } from "vitest";
import { root } from "./code-block.ts";

const folders = ["apps", "bench", "examples", "packages", "scripts", "test"];
const files = folders.flatMap((folder) => listFiles(join(root, folder)));

function listFiles(folder: string): { path: string; lines: string[] }[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      return ["node_modules", "dist"].includes(entry.name) ? [] : listFiles(path);
    }
    if (!/(?<!\.generated|\.d)\.(tsx?|mjs)$/.test(entry.name)) return [];
    return [{ path: relative(root, path), lines: readFileSync(path, "utf8").split("\n") }];
  });
}

/** Text of comments: without rows of tables, directives, and fenced or indented blocks. */
function textsOf(lines: readonly string[]): { line: string; number: number }[] {
  let isFenced = false;
  return lines.flatMap((line, index) => {
    const [, text] = /^\s*(?:\/\*\*|\*|\/\/) ?(.*)$/.exec(line) ?? [];
    if (text === undefined) return [];
    if (text.startsWith("```")) isFenced = !isFenced;
    const isOther = isFenced || /^(\||biome-ignore |@ts-| {2})/.test(text);
    return isOther ? [] : [{ line, number: index + 1 }];
  });
}

it("comments wrap at 100 columns", () => {
  const wide = files.flatMap(({ path, lines }) =>
    textsOf(lines)
      .filter(({ line }) => [...line].length > 100)
      .map(({ number }) => `${path}:${number}`),
  );
  expect(files.length).toBeGreaterThan(1_000);
  expect(wide).toEqual([]);
});
