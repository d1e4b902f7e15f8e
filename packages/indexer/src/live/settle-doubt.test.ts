import { createRpcPool } from "@coinslot/chain";
import { startDevnet } from "@coinslot/devnet";
import type { Transaction } from "kysely";
import { expect, it, onTestFinished } from "vitest";
import { silentLogger } from "../logger.ts";
import { bytesOfHex } from "../store/bytes.ts";
import type { IndexerSchema } from "../store/schema.ts";
import { chainId, openIndex } from "../testing/index-by-hand.ts";
import { settleDoubt } from "./settle-doubt.ts";

it("takes known blocks back that differ below all indexed ones, as after a reindex", async () => {
  const devnet = await startDevnet({ chainId });
  onTestFinished(() => devnet.stop());
  await devnet.mine(12);
  const { database, include } = await openIndex("sqlite::memory:");
  const { kysely } = database;
  await include(9, "9", [{ transaction: "a" }]);
  const hash = `0x${"ab".repeat(32)}` as const;
  const mark = { chain_id: chainId, number: 5, hash: bytesOfHex(hash) };
  await kysely.insertInto("indexer_marks").values(mark).execute();
  const pool = createRpcPool({ chainId, rpcUrls: [devnet.rpcUrl] });
  onTestFinished(() => pool.close());
  const [endpoint] = pool.endpoints;
  if (endpoint === undefined) throw new Error("No endpoint");
  const context = {
    chain: { chainId, name: "devnet", maxRewindBlocks: 1_000, verifyAfterMs: 100 },
    database,
    lease: {
      write: <T>(run: (transaction: Transaction<IndexerSchema>) => Promise<T>) =>
        kysely.transaction().execute(run),
    },
    logger: silentLogger,
    rewrites: { count: 0 },
  };
  const base = { number: 9, hash };
  const times = { timestamp: 1n, baseFeePerGas: undefined };
  const header = { number: 12n, hash, parentHash: hash, ...times };
  const head = { header, number: 12, timestampMs: 1_000, finalized: 9 };
  await settleDoubt(
    context,
    { type: "beyond-finality", base, replaced: base, found: hash, head },
    { endpoint, doubtedForMs: 100, unasked: undefined },
  );
  const requests = await kysely
    .selectFrom("indexer_requests")
    .select(["kind", "from_block"])
    .execute();
  expect(requests).toEqual([{ kind: "rewind", from_block: 5 }]);
});
