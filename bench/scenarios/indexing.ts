import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Devnet, startDevnet, startPostgres, transferBatch } from "@coinslot/devnet";
import { createIndexer, devnetChain } from "@coinslot/indexer";
import { sql } from "kysely";
import { bundleProgram } from "../support/bundle-program.ts";
import type { Figure } from "../support/figure.ts";
import { accounts, addressOf, generateTransfers } from "../support/generate-transfers.ts";
import { indexOnce } from "../support/index-once.ts";
import { percentile } from "../support/measure.ts";

const transactions = 500;
const transfersPerTransaction = 300;
/** Fewer are faster to make, and say less. */
const generatedRows = Number(process.env.BENCH_INDEXED_ROWS ?? 10_000_000);

/** History of a crowded chain, read from nothing into both databases. */
export async function indexing(): Promise<Figure[]> {
  const devnet = await startDevnet();
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  const postgres = await startPostgres();
  try {
    const transfers = await crowd(devnet);
    const { url } = await postgres.createDatabase();
    const databases = { sqlite: `sqlite:${join(folder, "indexer.db")}`, postgres: url };
    const program = await bundleProgram("indexer-process", folder);
    const figures: Figure[] = [];
    for (const [engine, database] of Object.entries(databases)) {
      const run = await indexOnce(program, { rpcUrl: devnet.rpcUrl, database, transfers });
      const perHundredThousand = (run.requests / transfers) * 100_000;
      figures.push(
        figure(`index ${transfers} transfers, cold, ${engine}`, {
          ours: `${Math.round(transfers / run.seconds).toLocaleString("en")} /s`,
          goal: "30,000 /s",
        }),
        figure(`  memory, ${engine}`, {
          ours: `${(run.peakBytes / 1e6).toFixed(0)} MB`,
          goal: "< 350 MB",
        }),
        figure(`  RPC requests for 100,000 transfers, ${engine}`, {
          ours: perHundredThousand.toFixed(0),
          goal: "<= 60",
        }),
      );
    }
    return figures;
  } finally {
    await devnet.stop();
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Pages of one address out of ten million transfers, in both databases. */
export async function indexingQueries(): Promise<Figure[]> {
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  const postgres = await startPostgres();
  try {
    const file = join(folder, "indexer.db");
    const { url } = await postgres.createDatabase();
    return [
      ...(await queryTimes("sqlite", `sqlite:${file}`, async () => (await stat(file)).size)),
      ...(await queryTimes("postgres", url)),
    ];
  } finally {
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Sends many transfers in few transactions, one in each block, to 20,000 recipients. Resolves to how many there are. */
async function crowd(devnet: Devnet): Promise<number> {
  const { client, token } = devnet;
  const batch = await devnet.deployTransferBatch();
  const perTransaction = BigInt(transfersPerTransaction - 1);
  let nonce = await client.getTransactionCount({ address: devnet.accounts.deployer.address });
  for (let index = 0; index < transactions; index++) {
    const first = 2n ** 159n + BigInt((index % 67) * transfersPerTransaction);
    await client.writeContract({
      address: batch,
      abi: transferBatch.abi,
      functionName: "run",
      args: [token, perTransaction, `0x${first.toString(16)}`, perTransaction],
      gas: 30_000_000n,
      nonce: nonce++,
    });
  }
  await devnet.mine(10);
  return transactions * transfersPerTransaction;
}

async function queryTimes(
  engine: "sqlite" | "postgres",
  database: string,
  fileSize?: () => Promise<number>,
): Promise<Figure[]> {
  const chain = devnetChain({ rpcUrls: ["http://127.0.0.1:1"] });
  const indexer = createIndexer({ chains: [chain], database });
  try {
    const stored = await indexer.database();
    const { kysely } = stored;
    const { id: tokenId } = await kysely
      .selectFrom("indexer_tokens")
      .select("id")
      .executeTakeFirstOrThrow();
    await generateTransfers({
      database: stored,
      tokenId,
      chainId: chain.chainId,
      rows: generatedRows,
    });
    const bytes = fileSize
      ? await fileSize()
      : await sql<{ size: number }>`select pg_database_size(current_database()) as size`
          .execute(kysely)
          .then(({ rows }) => rows[0]?.size ?? 0);

    const token = { blockchain: "devnet", token: "usdt" };
    const page = async (
      address: `0x${string}`,
      after?: { blockNumber: number; logIndex: number },
    ) => {
      const startedAt = performance.now();
      const query = { ...token, address, sort: "desc", limit: 10, fromMs: 0, after } as const;
      const transfers = await indexer.readTransfers(query);
      if (transfers.length !== 10) throw new Error(`A page of ${transfers.length} transfers.`);
      return { ms: performance.now() - startedAt, last: transfers.at(-1) };
    };
    const newest: number[] = [];
    for (let index = 0; index < 2_000; index++)
      newest.push((await page(addressOf((index * 7_907) % accounts))).ms);

    const pages: number[] = [];
    let after: { blockNumber: number; logIndex: number } | undefined;
    for (let number = 1; number <= 1_050; number++) {
      const { ms, last } = await page(addressOf(0), after);
      pages.push(ms);
      after = last && { blockNumber: last.blockNumber, logIndex: last.logIndex };
    }
    const late = pages.slice(950);
    const early = pages.slice(0, 100);
    return [
      figure(`newest 10 of an address among ${generatedRows / 1e6} million, p50 / p99, ${engine}`, {
        ours: `${percentile(newest, 0.5).toFixed(2)} / ${percentile(newest, 0.99).toFixed(2)} ms`,
        goal: "p99 < 5 ms",
      }),
      figure(`  pages 1-100, then 951-1050 of an address with a million, p50, ${engine}`, {
        ours: `${percentile(early, 0.5).toFixed(2)}, ${percentile(late, 0.5).toFixed(2)} ms`,
        goal: "no slower",
      }),
      figure(`  on disk, ${engine}`, {
        ours: `${(bytes / 1e9).toFixed(2)} GB, ${Math.round(bytes / generatedRows)} bytes a transfer`,
        goal: "",
      }),
    ];
  } finally {
    await indexer.close();
  }
}

function figure(scenario: string, { ours, goal }: { ours: string; goal: string }): Figure {
  return { scenario, ours, reference: "", ratio: "", goal };
}
