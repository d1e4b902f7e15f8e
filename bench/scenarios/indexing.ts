import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Devnet, startDevnet, startPostgres, transferBatch } from "@coinslot/devnet";
import { bundleProgram } from "@coinslot/devnet/bundle-program";
import type { Hash } from "viem";
import type { Figure } from "../support/figure.ts";
import { indexOnce } from "../support/index-once.ts";

const indexerSource = new URL("../support/indexer-process.ts", import.meta.url);
const transactions = 500;
const transfersPerTransaction = 300;

/** History of a crowded chain, read from nothing into both databases. */
export async function indexing(): Promise<Figure[]> {
  const devnet = await startDevnet();
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  const postgres = await startPostgres();
  try {
    const transfers = await crowd(devnet);
    const { url } = await postgres.createDatabase();
    const databases = { sqlite: `sqlite:${join(folder, "indexer.db")}`, postgres: url };
    const program = await bundleProgram(indexerSource, folder, { minifies: true });
    const figures: Figure[] = [];
    for (const [engine, database] of Object.entries(databases)) {
      const run = await indexOnce(program, { rpcUrl: devnet.rpcUrl, database, transfers });
      const perHundredThousand = (requests: number) => (requests / transfers) * 100_000;
      figures.push(
        {
          scenario: `index ${transfers} transfers, cold, ${engine}`,
          ours: { value: transfers / run.seconds, unit: "/s" },
          goal: { of: "ours", atLeast: 30_000 },
        },
        {
          scenario: `  processor time of the indexer for it, ${engine}`,
          ours: { value: run.processorSeconds, unit: "s", note: `of ${run.seconds.toFixed(1)} s` },
        },
        {
          scenario: `  memory, ${engine}`,
          ours: { value: run.peakBytes / 1e6, unit: "MB" },
          goal: { of: "ours", atMost: 350 },
        },
        {
          scenario: `  RPC requests for 100,000 transfers, ${engine}`,
          ours: { value: perHundredThousand(run.requests), unit: "" },
          goal: { of: "ours", atMost: 60 },
        },
        {
          scenario: `  the same with the second reading, ${engine}`,
          ours: { value: perHundredThousand(run.requestsVerified), unit: "" },
          goal: { of: "ours", atMost: 130 },
        },
      );
    }
    return figures;
  } finally {
    await devnet.stop();
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Sends many transfers in few transactions, one in each block, to 20,000 recipients. Resolves to
 * how many there are.
 */
async function crowd(devnet: Devnet): Promise<number> {
  const { client, token } = devnet;
  const batch = await devnet.deployTransferBatch();
  const perTransaction = BigInt(transfersPerTransaction - 1);
  let nonce = await client.getTransactionCount({ address: devnet.accounts.deployer.address });
  for (let index = 0; index < transactions; index++) {
    const first = 2n ** 159n + BigInt((index % 67) * transfersPerTransaction);
    const hash: Hash = await client.writeContract({
      address: batch,
      abi: transferBatch.abi,
      functionName: "run",
      args: [token, perTransaction, `0x${first.toString(16)}`, perTransaction],
      gas: 30_000_000n,
      nonce: nonce++,
    });
    // Anvil takes transactions faster than it mines them: it was up to 200 blocks behind.
    if (index % 50 === 49) await client.waitForTransactionReceipt({ hash });
  }
  await devnet.mine(10);
  return transactions * transfersPerTransaction;
}
