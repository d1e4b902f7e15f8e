import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Devnet, startDevnet, startPostgres } from "@coinslot/devnet";
import { createLedger } from "../../../packages/facilitator/src/ledger/create-ledger.ts";
import { retentionSteps } from "../../../packages/facilitator/src/ledger/maintenance/retention-steps.ts";
import { openLedger } from "../../../packages/facilitator/src/ledger/open-ledger.ts";
import type { Figure } from "../../support/figure.ts";
import { generatePayments } from "../../support/generate-payments.ts";
import { fundPayers } from "../../support/signed-payments.ts";
import {
  dayMs,
  type Engine,
  measureSize,
  processorMsSince,
  readLedger,
  useLedger,
} from "./large-ledger.ts";

const rows = Number(process.env.BENCH_LEDGER_ROWS ?? 100_000);

/** A year of payments that ended more than 30 days ago, on each engine. */
export async function years(): Promise<Figure[]> {
  const devnet = await startDevnet({ accountCount: 40 });
  try {
    await fundPayers(devnet);
    return [...(await yearsOn("sqlite", devnet)), ...(await yearsOn("postgres", devnet))];
  } finally {
    await devnet.stop();
  }
}

async function yearsOn(engine: Engine, devnet: Devnet): Promise<Figure[]> {
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  const postgres = engine === "postgres" ? await startPostgres() : undefined;
  const create = async (name: string) =>
    (await postgres?.createDatabase())?.url ?? `sqlite:${join(folder, name)}`;
  try {
    const [empty, url] = [await create("empty.db"), await create("ledger.db")];
    const emptyMs = (await useLedger(devnet, empty)).processorMs;
    await (await openLedger({ url, processId: "creates" })).close();
    const until = Date.now() - 31 * dayMs;
    await generatePayments(url, { rows, until, everyMs: Math.floor((365 * dayMs) / rows) });
    const written = await measureSize(url);
    const retired = await retire(url);
    const kept = await measureSize(url);
    const reads = await readLedger(url, { deepAt: Date.now() - 200 * dayMs });
    const used = await useLedger(devnet, url);
    const name = (measured: string) =>
      `${measured}, ${rows.toLocaleString("en")} payments, ${engine}`;
    const perPayment = (bytes: number) => ({ value: bytes / rows, unit: "bytes" });
    return [
      { scenario: name("a payment as written"), ours: perPayment(written.used) },
      {
        scenario: name("a payment 30 days after its end"),
        ours: perPayment(kept.used),
        goal: { of: "ours", atMost: 650 },
      },
      { scenario: name("the same with unused space of the files"), ours: perPayment(kept.file) },
      {
        scenario: name("retention, processor per payment"),
        ours: { value: retired.processorMs / rows, unit: "ms" },
      },
      {
        scenario: name("longest step of retention"),
        ours: { value: retired.maxMs, unit: "ms" },
      },
      { scenario: name("start-up"), ours: { value: used.startMs, unit: "ms" } },
      { scenario: name("newest page of 100, p50"), ours: { value: reads.newestMs, unit: "ms" } },
      {
        scenario: name("deep page of 100, p50"),
        ours: { value: reads.deepMs, unit: "ms" },
        ratio: { value: reads.deepMs / reads.newestMs, to: "the newest" },
        goal: { of: "ratio", atMost: 1.5 },
      },
      {
        scenario: name("export, 1,000 payments"),
        ours: { value: reads.exportMs, unit: "ms" },
      },
      {
        scenario: name("settlement, processor"),
        ours: { value: used.processorMs, unit: "ms" },
        ratio: { value: used.processorMs / emptyMs, to: "an empty ledger" },
      },
    ];
  } finally {
    await postgres?.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Runs one pass of retention without its pauses. */
async function retire(url: string): Promise<{ processorMs: number; maxMs: number }> {
  const { database, close } = await openLedger({ url, processId: "retires" });
  try {
    const ledger = createLedger({
      database,
      processId: "retires",
      now: Date.now,
      heartbeatLeaseMs: 10_000,
      keepAnswersMs: 60_000,
      releaseLimit: { count: 1, windowMs: 1_000 },
    });
    const times = {
      keepSignaturesMs: 30 * dayMs,
      keepPaymentsMs: undefined,
      keepUndeliveredMs: undefined,
    };
    let maxMs = 0;
    const before = process.cpuUsage();
    for (const step of retentionSteps(ledger, times)) {
      for (let isDone = false; !isDone; ) {
        const startedAt = performance.now();
        isDone = (await step()) === "done";
        maxMs = Math.max(maxMs, performance.now() - startedAt);
      }
    }
    return { processorMs: processorMsSince(before), maxMs };
  } finally {
    await close();
  }
}
