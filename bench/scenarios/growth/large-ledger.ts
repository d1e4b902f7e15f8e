import { stat } from "node:fs/promises";
import { type Devnet, withDatabase } from "@coinslot/devnet";
import { createFacilitator, openLedgerReader } from "@coinslot/facilitator";
import { percentile, timeConcurrently, timeEach } from "../../support/measure.ts";
import { requirementsOf, signPayments } from "../../support/signed-payments.ts";

export type Engine = "sqlite" | "postgres";

export const dayMs = 86_400_000;
/** Rows of an export, at most. */
const exported = 200_000;
/** Settlements that are measured, after as many to warm up. */
const settlements = 1_024;

/** Bytes of all tables and indexes in use, and of their files. */
export async function measureSize(url: string): Promise<{ used: number; file: number }> {
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

/** Times of the newest page, of one from `deepAt` (Unix milliseconds), and of 1,000 payments. */
export async function readLedger(
  url: string,
  { deepAt }: { deepAt: number },
): Promise<{ newestMs: number; deepMs: number; exportMs: number }> {
  const { payments, close } = await openLedgerReader({ url });
  try {
    const cursor = deepAt.toString(16).padStart(12, "0");
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

/** Starts a facilitator on a ledger, and settles. */
export async function useLedger(
  devnet: Devnet,
  ledger: string,
): Promise<{ startMs: number; processorMs: number }> {
  const startedAt = performance.now();
  const facilitator = openFacilitator(devnet, ledger);
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

/** A facilitator on a ledger, with the devnet's relayer. */
export function openFacilitator(devnet: Devnet, ledger: string) {
  const { network, rpcUrl, accounts } = devnet;
  return createFacilitator({
    networks: [
      { network, rpcUrls: [rpcUrl], relayer: { privateKey: accounts.relayer.privateKey } },
    ],
    ledger,
  });
}

/** Processor time of this process, all of its threads, since `process.cpuUsage()`. */
export function processorMsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
