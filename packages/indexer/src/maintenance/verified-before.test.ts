import { describe, expect, it } from "vitest";
import { coverRange, findVerifiedTo, readCoverage } from "../store/coverage.ts";
import { addRequest } from "../store/requests.ts";
import { engines } from "../testing/engines.ts";
import { startFaultProxy } from "../testing/fault-proxy.ts";
import { finalDepth } from "../testing/final-depth.ts";
import { expectVerified } from "../testing/oracle.ts";
import { startFastIndexer, startUsedChain, usdtOf } from "../testing/scene.ts";

describe.each(engines)("blocks to be verified again, on $engine", ({ createUrl }) => {
  it.each(["verify", "reindex"] as const)(
    "count as verified where a rewind without a command is bounded, until one: %s",
    async (kind) => {
      const devnet = await startUsedChain();
      const { chainId } = devnet;
      const proxy = await startFaultProxy(devnet.rpcUrl);
      const indexer = await startFastIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
      await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
      const { kysely, dialect } = await indexer.database();
      const tokens = await kysely.selectFrom("indexer_tokens").select("id").execute();
      const before = await findVerifiedTo(kysely, chainId);
      expect(before).toBeGreaterThan(5);

      proxy.cut();
      await addRequest(kysely, dialect, { chainId, kind, from: 0 });
      const verified = async () =>
        [...(await readCoverage(kysely, tokens, "indexer_verified_ranges")).values()].flat();
      await expect.poll(verified, { timeout: 20_000 }).toEqual([]);
      expect(await findVerifiedTo(kysely, chainId)).toBe(before);

      await addRequest(kysely, dialect, { chainId, kind: "rewind", from: 5 });
      await expect.poll(() => findVerifiedTo(kysely, chainId), { timeout: 20_000 }).toBe(4);
    },
  );

  it("count also of a token that is not configured any more", async () => {
    const devnet = await startUsedChain();
    const indexer = await startFastIndexer({
      rpcUrls: [devnet.rpcUrl],
      database: await createUrl(),
    });
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    const { kysely, transaction } = await indexer.database();
    const { chainId } = devnet;
    const { id } = await kysely
      .insertInto("indexer_tokens")
      .values({
        chain_id: chainId,
        address: Buffer.alloc(20, 1),
        name: "gone",
        opens_at_zero: 1,
        revision: 0,
      })
      .returning("id")
      .executeTakeFirstOrThrow();
    await transaction((tx) =>
      coverRange(tx, id, { from: 0, next: 1_000 }, "indexer_verified_ranges"),
    );
    expect(await findVerifiedTo(kysely, chainId)).toBe(999);
  });
});
