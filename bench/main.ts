// Measures ours beside the reference implementation, on the same chain, in one run.
//   pnpm bench                  everything
//   pnpm bench verify settle    some scenarios
import { http } from "./scenarios/http.ts";
import { indexing } from "./scenarios/indexing.ts";
import { indexingQueries } from "./scenarios/indexing-queries.ts";
import { settle } from "./scenarios/settle.ts";
import { settleInBlocks } from "./scenarios/settle-in-blocks.ts";
import { verify } from "./scenarios/verify.ts";
import { type Figure, printFigures } from "./support/figure.ts";

const scenarios: Record<string, () => Promise<Figure[]>> = {
  verify,
  settle: () => settle("sqlite"),
  "settle-postgres": () => settle("postgres"),
  blocks: settleInBlocks,
  http,
  indexing,
  "indexing-queries": () => indexingQueries("sqlite"),
  "indexing-queries-postgres": () => indexingQueries("postgres"),
};

const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(scenarios);
const unknown = names.filter((name) => scenarios[name] === undefined);
if (unknown.length > 0) {
  console.error(`Unknown: ${unknown.join(", ")}. There are: ${Object.keys(scenarios).join(", ")}.`);
  process.exit(1);
}
const figures: Figure[] = [];
for (const name of names) {
  console.error(`${name} ...`);
  figures.push(...((await scenarios[name]?.()) ?? []));
}
printFigures(figures);
