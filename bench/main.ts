// Measures ours beside the reference implementation, on the same chain, in one run.
//     npm run bench                     every scenario, as a table
//     npm run bench -- verify settle    some of them
//     npm run bench -- growth           every scenario whose name begins with growth-
//     npm run bench -- --json verify    the rows as JSON on standard output
import { parseArgs } from "node:util";
import { channels } from "./scenarios/channels.ts";
import { channelsBesideExact } from "./scenarios/channels-beside-exact.ts";
import { books } from "./scenarios/growth/books.ts";
import { bounds } from "./scenarios/growth/bounds.ts";
import { fleet } from "./scenarios/growth/fleet.ts";
import { nodeBill } from "./scenarios/growth/node-bill.ts";
import { operators } from "./scenarios/growth/operators.ts";
import { rollingRestart } from "./scenarios/growth/rolling-restart.ts";
import { slowBlocks } from "./scenarios/growth/slow-blocks.ts";
import { soak } from "./scenarios/growth/soak.ts";
import { years } from "./scenarios/growth/years.ts";
import { http } from "./scenarios/http.ts";
import { indexing } from "./scenarios/indexing.ts";
import { indexingQueries } from "./scenarios/indexing-queries.ts";
import { firstPages } from "./scenarios/pages/first-pages.ts";
import { consoleOnLedger } from "./scenarios/pages/ledger.ts";
import { settle } from "./scenarios/settle.ts";
import { settleInBlocks } from "./scenarios/settle-in-blocks.ts";
import { verify } from "./scenarios/verify.ts";
import { webhooks } from "./scenarios/webhooks.ts";
import { wires } from "./scenarios/wires.ts";
import { type Figure, formatJson, formatTable, verdictOf } from "./support/figure.ts";

const scenarios: Record<string, () => Promise<Figure[]>> = {
  verify,
  settle: () => settle("sqlite"),
  "settle-postgres": () => settle("postgres"),
  blocks: settleInBlocks,
  http,
  wires,
  channels,
  "channels-beside-exact": channelsBesideExact,
  webhooks: () => webhooks("sqlite"),
  "webhooks-postgres": () => webhooks("postgres"),
  indexing,
  "pages-first": firstPages,
  "pages-ledger": () => consoleOnLedger("sqlite"),
  "pages-ledger-postgres": () => consoleOnLedger("postgres"),
  "growth-books": books,
  "growth-bounds": bounds,
  "indexing-queries": () => indexingQueries("sqlite"),
  "indexing-queries-postgres": () => indexingQueries("postgres"),
  "growth-slow-blocks": slowBlocks,
  "growth-operators": () => operators("sqlite"),
  "growth-operators-postgres": () => operators("postgres"),
  "growth-node-bill": nodeBill,
  "growth-fleet": fleet,
  "growth-rolling-restart": rollingRestart,
  "growth-soak": soak,
  "growth-years": years,
};

const { values, positionals } = parseArgs({
  options: { json: { type: "boolean", default: false } },
  allowPositionals: true,
});
const names = positionals.length > 0 ? positionals.flatMap(membersOf) : Object.keys(scenarios);
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
console.log(values.json ? formatJson(figures) : formatTable(figures));
// Times depend on the machine and its other work; counts do not.
const missed = figures.filter(
  (figure) => figure.ours.unit === "" && verdictOf(figure) === "missed",
);
for (const { scenario } of missed) console.error(`Missed: ${scenario.trim()}`);
if (missed.length > 0) process.exitCode = 1;

/** A scenario, or all of a group: `growth` is every `growth-...`. */
function membersOf(name: string): string[] {
  const members = Object.keys(scenarios).filter((scenario) => scenario.startsWith(`${name}-`));
  return scenarios[name] === undefined && members.length > 0 ? members : [name];
}
