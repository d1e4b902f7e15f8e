import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startPostgres, withDatabase } from "@coinslot/devnet";
import { runCli } from "../../../packages/cli/src/run-cli.ts";
import { postEarlier } from "../../../packages/facilitator/src/books/post-earlier.ts";
import { createLedger } from "../../../packages/facilitator/src/ledger/create-ledger.ts";
import { openLedger } from "../../../packages/facilitator/src/ledger/open-ledger.ts";
import type { Figure } from "../../support/figure.ts";
import { generatePayments } from "../../support/generate-payments.ts";
import { dayMs, type Engine, measureSize, processorMsSince } from "./large-ledger.ts";

const rows = Number(process.env.BENCH_LEDGER_ROWS ?? 100_000);
/** Payments of a month, and the time for their export. */
const monthRows = 10_000_000;
const monthGoalSeconds = 300;

/** The books of a month: their size, posting of earlier payments, and exports. */
export async function books(): Promise<Figure[]> {
  return [...(await booksOn("sqlite")), ...(await booksOn("postgres"))];
}

async function booksOn(engine: Engine): Promise<Figure[]> {
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  const postgres = engine === "postgres" ? await startPostgres() : undefined;
  try {
    const url = (await postgres?.createDatabase())?.url ?? `sqlite:${join(folder, "ledger.db")}`;
    await (await openLedger({ url, processId: "creates" })).close();
    const everyMs = Math.floor((29 * dayMs) / rows);
    await generatePayments(url, { rows, until: Date.now() - dayMs, everyMs });
    const before = await measureSize(url);
    const posted = await post(url);
    const after = await measureSize(url);
    const name = (measured: string) =>
      `books: ${measured}, ${rows.toLocaleString("en")} payments, ${engine}`;
    const month = (seconds: number) => ({ value: (seconds / rows) * monthRows, unit: "s" });
    const exports: Figure[] = [];
    for (const args of [[], ["--by", "day", "route"], ["--format", "beancount"]]) {
      const { seconds, processorSeconds, growth } = await exportBooks(url, args);
      const words = ["export", ...args].join(" ");
      exports.push(
        {
          scenario: name(`${words}, ten million at this pace`),
          ours: month(seconds),
          goal: { of: "ours", atMost: monthGoalSeconds },
        },
        { scenario: name(`${words}, the same, processor`), ours: month(processorSeconds) },
        { scenario: name(`${words}, memory after a tenth to its peak`), ours: growth },
      );
    }
    return [
      {
        scenario: name("bytes of a payment's entry"),
        ours: { value: (after.used - before.used) / rows, unit: "bytes" },
        goal: { of: "ours", atMost: 250 },
      },
      {
        scenario: name("earlier payments posted, processor of one"),
        ours: { value: posted / rows, unit: "ms" },
      },
      ...exports,
    ];
  } finally {
    await postgres?.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Posts all payments, as after the migration of a ledger that had them before. */
async function post(url: string): Promise<number> {
  await withDatabase(url, ({ execute }) =>
    execute("update book_progress set last_id = (select max(id) from payments)"),
  );
  const { database, close } = await openLedger({ url, processId: "posts" });
  try {
    const ledger = createLedger({
      database,
      processId: "posts",
      now: Date.now,
      heartbeatLeaseMs: 10_000,
      keepAnswersMs: 60_000,
      releaseLimit: { count: 1, windowMs: 1_000 },
    });
    const before = process.cpuUsage();
    while (await postEarlier(ledger));
    return processorMsSince(before);
  } finally {
    await close();
  }
}

/** Runs the command in this process. Its output is counted, and goes nowhere. */
async function exportBooks(url: string, args: readonly string[]) {
  let bytes = 0;
  const samples: number[] = [];
  const before = process.cpuUsage();
  const startedAt = performance.now();
  const code = await runCli(
    ["books", "export", ...args],
    {
      out: () => undefined,
      err: (text) => console.error(text),
      confirm: undefined,
      isColourful: false,
      env: { COINSLOT_LEDGER: url },
      signal: new AbortController().signal,
    },
    {
      folder: process.cwd(),
      temporaryFolder: tmpdir(),
      historyFile: undefined,
      userId: undefined,
      isTerminal: true,
      write: async (chunk) => {
        bytes += chunk.length;
        samples.push(process.memoryUsage().rss);
      },
      now: Date.now,
      readInput: async () => new Uint8Array(),
      showWaiting: () => () => undefined,
      progress: undefined,
    },
  );
  if (code !== 0 || bytes === 0) throw new Error(`The export ended with ${code}`);
  const seconds = (performance.now() - startedAt) / 1_000;
  const processorSeconds = processorMsSince(before) / 1_000;
  const early = Math.max(...samples.slice(0, Math.ceil(samples.length / 10)));
  const growth = (Math.max(...samples) - early) / 2 ** 20;
  return { seconds, processorSeconds, growth: { value: growth, unit: "MB" } };
}
