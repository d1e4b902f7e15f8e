import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./code-block.ts";

/** The program's text, without its tests: what documents speak of has to occur in it. */
export const sources = [
  "apps",
  "packages",
  "bench",
  "examples",
  "scripts",
  "test/faults",
  "test/interop",
].flatMap((folder) => readSources(join(root, folder)));

function readSources(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      return ["node_modules", "dist"].includes(entry.name) ? [] : readSources(path);
    }
    return /(?<!\.test)\.(ts|mjs)$/.test(entry.name) ? [readFileSync(path, "utf8")] : [];
  });
}
