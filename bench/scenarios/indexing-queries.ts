import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startPostgres } from "@coinslot/devnet";
import { createIndexer, devnetChain, type IndexedTransfer, type Indexer } from "@coinslot/indexer";
import type { Figure } from "../support/figure.ts";
import { addressOf, generateTransfers, heavy } from "../support/generate-transfers.ts";
import { percentile } from "../support/measure.ts";

/** Fewer are faster to make, and less conclusive. */
const rows = Number(process.env.BENCH_INDEXED_ROWS ?? 10_000_000);
const pageLength = 10;
const farPage = 1_000;
/** Code that runs for the first time is compiled first. */
const warmUp = 300;
const measured = 3_000;
const repeats = 500;

type Address = `0x${string}`;

/** Pages of one address out of ten million transfers. */
export async function indexingQueries(engine: "sqlite" | "postgres"): Promise<Figure[]> {
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  const postgres = engine === "postgres" ? await startPostgres() : undefined;
  try {
    const made = await postgres?.createDatabase();
    const database = made?.url ?? `sqlite:${join(folder, "indexer.db")}`;
    const indexer = createIndexer({
      chains: [devnetChain({ rpcUrls: ["http://127.0.0.1:1"] })],
      database,
    });
    try {
      await indexer.ready();
      const { bytes, heavyTransfers, accounts } = await generateTransfers(database, rows);
      const list = await timePages(indexer, { accounts });
      return describe(engine, { ...list, bytes, heavyTransfers });
    } finally {
      await indexer.close();
    }
  } finally {
    await postgres?.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * The milliseconds of each page: the first of many addresses; of the heaviest one all, the first, a
 * far one.
 */
async function timePages(indexer: Indexer, { accounts }: { accounts: number }) {
  async function readPage(address: Address, after?: IndexedTransfer) {
    const startedAt = performance.now();
    const transfers = await indexer.readTransfers({
      blockchain: "devnet",
      token: "usdt",
      address,
      sort: "desc",
      limit: pageLength,
      fromMs: 0,
      after,
    });
    const ms = performance.now() - startedAt;
    if (transfers.length !== pageLength) throw new Error(`A page of ${transfers.length}.`);
    return { ms, last: transfers.at(-1) };
  }

  const any: number[] = [];
  for (let index = 0; index < warmUp + measured; index++) {
    // Every account with an odd number is a sender.
    const { ms } = await readPage(addressOf(((index * 7_907) % accounts) | 1));
    if (index >= warmUp) any.push(ms);
  }
  const walked: number[] = [];
  let last: IndexedTransfer | undefined;
  for (let page = 1; page < farPage; page++) {
    const read = await readPage(addressOf(heavy), last);
    walked.push(read.ms);
    last = read.last;
  }
  // In turns, so that both share the machine's other load.
  const near: number[] = [];
  const far: number[] = [];
  for (let index = 0; index < repeats; index++) {
    near.push((await readPage(addressOf(heavy))).ms);
    far.push((await readPage(addressOf(heavy), last)).ms);
  }
  return { any, walked, near, far };
}

function describe(
  engine: string,
  run: {
    any: readonly number[];
    walked: readonly number[];
    near: readonly number[];
    far: readonly number[];
    bytes: number;
    heavyTransfers: number;
  },
): Figure[] {
  const heavy = `of the address with ${run.heavyTransfers.toLocaleString("en")} transfers`;
  const spread = (scenario: string, times: readonly number[], of: "ours" | "ratio"): Figure[] => {
    const median = { value: percentile(times, 0.5), unit: "ms" };
    const nearMedian = percentile(run.near, 0.5);
    return [
      {
        scenario: `${scenario}, p50, ${engine}`,
        ours: median,
        ...(of === "ratio" && {
          ratio: { value: median.value / nearMedian, to: "page 1" },
          goal: { of, atMost: 1.1 },
        }),
      },
      {
        scenario: `${scenario}, p99, ${engine}`,
        ours: { value: percentile(times, 0.99), unit: "ms" },
        goal: { of: "ours", atMost: 5 },
      },
    ];
  };
  return [
    ...spread(`newest 10 of an address among ${rows / 1e6} million`, run.any, "ours"),
    ...spread(`  every page down to ${farPage} ${heavy}`, run.walked, "ours"),
    ...spread("  its page 1, again and again", run.near, "ours"),
    ...spread(`  its page ${farPage}, likewise`, run.far, "ratio"),
    {
      scenario: `  on disk, for each transfer, ${engine}`,
      ours: { value: run.bytes / rows, unit: "bytes" },
    },
  ];
}
