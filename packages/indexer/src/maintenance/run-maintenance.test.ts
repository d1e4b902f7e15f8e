import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { enginesByDay } from "../testing/engines.ts";
import { expectExact, readStored } from "../testing/oracle.ts";
import { expectVerified, maintain } from "../testing/request-maintenance.ts";
import { startIndexer, startUsedChain, usdtOf } from "../testing/scene.ts";
import { MaintenanceError, type MaintenanceWish } from "./run-maintenance.ts";

describe.each(enginesByDay)("maintenance, on $engine", ({ createUrl }) => {
  it("verifies, reindexes and rewinds beside a running service", async () => {
    const devnet = await startUsedChain(30);
    const database = await createUrl();
    const service = await startIndexer({ rpcUrls: [devnet.rpcUrl], database });
    await expectExact(service, devnet, usdtOf(devnet));
    await expectVerified(service, devnet);
    const run = (wish: Partial<MaintenanceWish> & Pick<MaintenanceWish, "kind">) =>
      maintain(devnet, database, wish);

    // Already verified: the service does not read it again unasked.
    const { kysely } = await service.database();
    const { position } = await kysely
      .selectFrom("indexer_transfers")
      .select("position")
      .orderBy("position")
      .executeTakeFirstOrThrow();
    await kysely.deleteFrom("indexer_transfers").where("position", "=", position).execute();
    expect(await run({ kind: "verify" })).toMatchObject({ phase: "done", repairedBlocks: 1 });
    await expectExact(service, devnet, usdtOf(devnet));

    expect(await run({ kind: "reindex", from: 10, to: 20 })).toMatchObject({ phase: "done" });
    await expectExact(service, devnet, usdtOf(devnet));
    expect(await run({ kind: "reindex", token: "usdt" })).toMatchObject({ phase: "done" });
    await expectExact(service, devnet, usdtOf(devnet));

    expect(await run({ kind: "rewind", from: 15 })).toMatchObject({ phase: "done" });
    await expectExact(service, devnet, usdtOf(devnet));
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 3n });
    await expectExact(service, devnet, usdtOf(devnet));
    expect((await service.status()).role).toBe("writer");
  });

  it("takes the writer lease where no service runs, and leaves the rest to the next process when it is stopped", async () => {
    const devnet = await startUsedChain(20);
    const database = await createUrl();
    const before = await startIndexer({ rpcUrls: [devnet.rpcUrl], database });
    await expectVerified(before, devnet);
    await before.close();
    expect(await maintain(devnet, database, { kind: "verify" })).toMatchObject({ phase: "done" });

    const stopping = new AbortController();
    const stopped = maintain(devnet, database, { kind: "rewind", from: 5 }, stopping.signal, () =>
      stopping.abort(new Error("Ctrl-C")),
    );
    await expect(stopped).rejects.toThrow("Ctrl-C");
    const service = await startIndexer({ rpcUrls: [devnet.rpcUrl], database });
    // Until the rewind is done, the service may be exact and lose its newest blocks a moment later.
    const { kysely } = await service.database();
    await expect
      .poll(
        () =>
          kysely
            .selectFrom("indexer_requests")
            .select("id")
            .where("done_at_ms", "is", null)
            .execute(),
        { timeout: 20_000 },
      )
      .toEqual([]);
    await expectExact(service, devnet, usdtOf(devnet));
    expect(await readStored(service, usdtOf(devnet))).not.toEqual([]);
  });

  it("ends on a growing chain with the block that was final at its request", async () => {
    const devnet = await startUsedChain(20);
    const database = await createUrl();
    const service = await startIndexer({ rpcUrls: [devnet.rpcUrl], database });
    await expectVerified(service, devnet);
    const growing = new AbortController();
    const growth = (async () => {
      while (!growing.signal.aborted) {
        await devnet.mine(1);
        await pause(30);
      }
    })();
    try {
      const patience = AbortSignal.timeout(100_000);
      const done = await maintain(devnet, database, { kind: "verify" }, patience);
      expect(done).toMatchObject({ phase: "done", share: 1 });
    } finally {
      growing.abort();
      await growth;
    }
  });

  it("repairs a block's time, and with reindex the balances that differ from their transfers' sum", async () => {
    const devnet = await startUsedChain(20);
    const database = await createUrl();
    const service = await startIndexer({ rpcUrls: [devnet.rpcUrl], database });
    await expectVerified(service, devnet);
    const { kysely, dialect } = await service.database();
    const readTimes = () =>
      kysely
        .selectFrom("indexer_blocks")
        .select(["number", "timestamp_ms"])
        .orderBy("number")
        .execute();
    const times = await readTimes();
    const changeTimes = () =>
      kysely
        .updateTable("indexer_blocks")
        .set({ timestamp_ms: 1_000 })
        .where("number", "in", [times[2]?.number ?? 0, times[7]?.number ?? 0])
        .execute();
    await changeTimes();
    expect(await maintain(devnet, database, { kind: "verify" })).toMatchObject({
      repairedBlocks: 2,
    });
    expect(await readTimes()).toEqual(times);
    await changeTimes();
    expect(await maintain(devnet, database, { kind: "reindex", from: 0 })).toMatchObject({
      repairedBlocks: 0,
    });
    expect(await readTimes()).toEqual(times);

    await devnet.mint({ to: devnet.accounts.seller.address, amount: 3n });
    await expectExact(service, devnet, usdtOf(devnet));
    await kysely
      .updateTable("indexer_balances")
      .set({ amount: dialect.amount.encode(777n) })
      .execute();
    await maintain(devnet, database, { kind: "reindex" });
    await expectExact(service, devnet, usdtOf(devnet));
  });

  it("refuses unconfigured chains and tokens, and invalid block ranges", async () => {
    const devnet = await startUsedChain();
    const database = await createUrl();
    const service = await startIndexer({ rpcUrls: [devnet.rpcUrl], database });
    await expectVerified(service, devnet);
    for (const wish of [
      { chain: "moon" },
      { token: "gold" },
      { from: 5, to: 4 },
      { from: 2 ** 53 - 1 },
      { from: 1.5 },
      { from: -1 },
      { from: 10_000 },
    ])
      for (const kind of ["verify", "reindex", "rewind"] as const)
        await expect(maintain(devnet, database, { kind, ...wish })).rejects.toThrow(
          MaintenanceError,
        );
    const { kysely } = await service.database();
    expect(await kysely.selectFrom("indexer_requests").select("id").execute()).toEqual([]);
  });

  it("reports an empty index, instead of success", async () => {
    const devnet = await startUsedChain();
    const database = await createUrl();
    for (const kind of ["verify", "reindex", "rewind"] as const)
      await expect(maintain(devnet, database, { kind })).rejects.toThrow(
        "Nothing of devnet is indexed in this database yet",
      );
  });
});
