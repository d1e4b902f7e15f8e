import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Devnet, startDevnet, startPostgres, withDatabase } from "@coinslot/devnet";
import { createFacilitator, openLedgerReader } from "@coinslot/facilitator";
import { createLedger } from "../../../packages/facilitator/src/ledger/create-ledger.ts";
import { retentionSteps } from "../../../packages/facilitator/src/ledger/maintenance/retention-steps.ts";
import { openLedger } from "../../../packages/facilitator/src/ledger/open-ledger.ts";
import type { Figure } from "../../support/figure.ts";
import { generatePayments } from "../../support/generate-payments.ts";
import { percentile, timeConcurrently, timeEach } from "../../support/measure.ts";
import { fundPayers, requirementsOf, signPayments } from "../../support/signed-payments.ts";

type Engine = "sqlite" | "postgres";

const rows = Number(process.env.BENCH_LEDGER_ROWS ?? 100_000);
const dayMs = 86_400_000;
/** Rows of an export, at most. */
const exported = 200_000;
/** Settlements that are measured, after as many to warm up. */
const settlements = 1_024;

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
    const reads = await readLedger(url);
    const used = await useLedger(devnet, url);
    const name = (what: string) => `${what}, ${rows.toLocaleString("en")} payments, ${engine}`;
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
        ours: { value: retired.longestMs, unit: "ms" },
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
async function retire(url: string): Promise<{ processorMs: number; longestMs: number }> {
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
    let longestMs = 0;
    const before = process.cpuUsage();
    for (const step of retentionSteps(ledger, times)) {
      for (let isDone = false; !isDone; ) {
        const startedAt = performance.now();
        isDone = (await step()) === "done";
        longestMs = Math.max(longestMs, performance.now() - startedAt);
      }
    }
    return { processorMs: processorMsSince(before), longestMs };
  } finally {
    await close();
  }
}

/** Bytes of all tables and indexes in use, and of their files. */
async function measureSize(url: string): Promise<{ used: number; file: number }> {
  return withDatabase(url, async ({ engine, read, execute }) => {
    if (engine === "sqlite") {
      await execute("pragma wal_checkpoint(truncate)");
      const [row] = await read(`
        select (page_count - freelist_count) * page_size as used
        from pragma_page_count, pragma_freelist_count, pragma_page_size`);
      return { used: Number(row?.used), file: (await stat(url.slice("sqlite:".length))).size };
    }
    const measure = async () => {
      const [row] = await read(`
        select sum(pg_total_relation_size(oid)) as bytes from pg_class
        where relnamespace = 'public'::regnamespace and relkind = 'r'`);
      return Number(row?.bytes);
    };
    // As autovacuum does: indexes keep their empty pages for new rows.
    await execute("vacuum");
    const file = await measure();
    await execute("vacuum full");
    return { used: await measure(), file };
  });
}

async function readLedger(
  url: string,
): Promise<{ newestMs: number; deepMs: number; exportMs: number }> {
  const { payments, close } = await openLedgerReader({ url });
  try {
    const middle = Date.now() - 200 * dayMs;
    const cursor = middle.toString(16).padStart(12, "0");
    const turns = Array.from({ length: 50 });
    const pageOf = (page: { cursor?: string }) => async () => {
      await payments.list({ limit: 100, ...page });
    };
    const newest = await timeEach(turns, pageOf({}));
    const deep = await timeEach(turns, pageOf({ cursor }));
    let next: string | undefined;
    let count = 0;
    const startedAt = performance.now();
    do {
      const page = await payments.list({ limit: 1_000, cursor: next });
      count += page.payments.length;
      next = page.nextCursor;
    } while (next !== undefined && count < exported);
    return {
      newestMs: percentile(newest, 0.5),
      deepMs: percentile(deep, 0.5),
      exportMs: ((performance.now() - startedAt) / count) * 1_000,
    };
  } finally {
    await close();
  }
}

/** Starts a facilitator on the ledger, and settles. */
async function useLedger(
  devnet: Devnet,
  ledger: string,
): Promise<{ startMs: number; processorMs: number }> {
  const startedAt = performance.now();
  const facilitator = createFacilitator({
    networks: [
      {
        network: devnet.network,
        rpcUrls: [devnet.rpcUrl],
        relayer: { privateKey: devnet.accounts.relayer.privateKey },
      },
    ],
    ledger,
  });
  await facilitator.ready();
  const startMs = performance.now() - startedAt;
  try {
    const requirements = requirementsOf(devnet);
    const settle = async (payments: Awaited<ReturnType<typeof signPayments>>) => {
      const before = process.cpuUsage();
      await timeConcurrently(payments, 64, async (payment) => {
        const { success, errorReason } = await facilitator.settle(payment, requirements);
        if (!success) throw new Error(`A good payment was not settled: ${errorReason}`);
      });
      return processorMsSince(before) / payments.length;
    };
    await settle(await signPayments(devnet, settlements));
    const payments = await signPayments(devnet, settlements);
    return { startMs, processorMs: await settle(payments) };
  } finally {
    await facilitator.close();
  }
}

function processorMsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
