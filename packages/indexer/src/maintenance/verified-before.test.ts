import type { Transaction } from "kysely";
import { describe, expect, it } from "vitest";
import { silentLogger } from "../logger.ts";
import { coverRange, findVerifiedTo, readCoverage } from "../store/coverage.ts";
import { addRequest, readNextRequest } from "../store/requests.ts";
import type { IndexerSchema } from "../store/schema.ts";
import { engines } from "../testing/engines.ts";
import { startFaultProxy } from "../testing/fault-proxy.ts";
import { finalDepth } from "../testing/final-depth.ts";
import { chainId as handMadeChain, openIndex } from "../testing/index-by-hand.ts";
import { expectVerified } from "../testing/oracle.ts";
import { startFastIndexer, startUsedChain, usdtOf } from "../testing/scene.ts";
import { runRequest } from "./run-request.ts";

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

  it("are recorded once by a reindex that is tried again", async () => {
    const { database, include, verify } = await openIndex(await createUrl());
    await include(1, "1", [{ transaction: "a" }]);
    await verify(1);
    const { kysely, dialect } = database;
    const chain = { chainId: handMadeChain, name: "devnet" };
    await addRequest(kysely, dialect, { chainId: handMadeChain, kind: "reindex", from: 0 });
    const request = await readNextRequest(kysely, { chainId: handMadeChain, isDoubted: false });
    if (request === undefined) throw new Error("No request");
    let writes = 0;
    const lease = {
      write: <T>(run: (transaction: Transaction<IndexerSchema>) => Promise<T>) =>
        ++writes % 2 === 0
          ? Promise.reject(new Error("The database is away"))
          : kysely.transaction().execute(run),
    };
    const rewrites = { count: 0 };
    const context = { chain, tokens: [], database, lease, logger: silentLogger, rewrites };
    for (let attempt = 0; attempt < 3; attempt++)
      await expect(runRequest(context, request, new AbortController().signal)).rejects.toThrow(
        "The database is away",
      );
    expect(await findVerifiedTo(kysely, handMadeChain)).toBe(1);
    const requests = await kysely.selectFrom("indexer_requests").select("kind").execute();
    expect(requests.map(({ kind }) => kind)).toEqual(["reindex", "verify"]);
  });

  it("count as far as a later verify had them, after a reindex of fewer that waited", async () => {
    const { database, include, verify } = await openIndex(await createUrl());
    for (const number of [1, 2, 3]) {
      await include(number, `${number}`, [{ transaction: "a" }]);
      await verify(number);
    }
    const { kysely, dialect } = database;
    const lease = {
      write: <T>(run: (transaction: Transaction<IndexerSchema>) => Promise<T>) =>
        kysely.transaction().execute(run),
    };
    const chain = { chainId: handMadeChain, name: "devnet" };
    const context = { chain, tokens: [], database, lease, logger: silentLogger };
    const chainId = handMadeChain;
    await addRequest(kysely, dialect, { chainId, kind: "reindex", from: 0, next: 2 });
    await addRequest(kysely, dialect, { chainId, kind: "verify", from: 0 });
    for (const isDoubted of [true, false]) {
      const request = await readNextRequest(kysely, { chainId, isDoubted });
      if (request === undefined) throw new Error("No request");
      const { signal } = new AbortController();
      await runRequest({ ...context, rewrites: { count: 0 } }, request, signal);
      expect(await findVerifiedTo(kysely, chainId)).toBe(3);
    }
  });

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
