// Runs the tests that start no chain, no database server, no browser and no process: seconds, not
// minutes.
//   node scripts/unit-tests.mjs [arguments of vitest]
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const starters =
  /(?:from|import\() ?"(?:@coinslot\/devnet(?!\/effort")[^"]*|@coinslot\/pages\/testing|playwright-core|node:(?:child_process|worker_threads))"/;
const relativeImports = /(?:from|import\() ?"(\.[^"]+)"/g;
const known = new Map();

const files = ["packages", "apps", "test", "bench", "site"]
  .flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" }).map((file) => join(folder, file)),
  )
  .filter((file) => file.endsWith(".test.ts") && !file.includes("node_modules"))
  // The devnet starts its own chain and server by relative imports.
  .filter((file) => !file.startsWith(join("packages", "devnet")) && !startsSomething(file));
const vitest = join("node_modules", "vitest", "vitest.mjs");
const { status } = spawnSync("node", [vitest, "run", ...files, ...process.argv.slice(2)], {
  stdio: "inherit",
});
process.exit(status ?? 1);

/** Returns whether a file, or one that it imports, starts a chain, a server or a process. */
function startsSomething(file) {
  const found = known.get(file);
  if (found !== undefined) return found;
  // Files with mutual imports share their imports' tests.
  known.set(file, false);
  if (!existsSync(file)) return false;
  const text = readFileSync(file, "utf8");
  const starts =
    starters.test(text) ||
    [...text.matchAll(relativeImports)].some(([, path]) =>
      startsSomething(join(dirname(file), path)),
    );
  known.set(file, starts);
  return starts;
}
