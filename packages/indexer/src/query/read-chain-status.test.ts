import { sql } from "kysely";
import { describe, expect, it, onTestFinished } from "vitest";
import { devnetChain } from "../chains/indexer-chain.ts";
import { createIndexer } from "../create-indexer.ts";
import { updateChecks } from "../store/checks.ts";
import { engines } from "../testing/engines.ts";

const address = "0x00000000000000000000000000000000000000aa";
const head = 1_000;

describe.each(engines)("the health of a chain, on $engine", ({ createUrl }) => {
  /** An indexer that only answers, of a chain that another process follows. */
  async function openScene({
    progressAgoMs = 0,
    seenAgoMs = 0,
    problem = null as string | null,
    state = "live" as "live" | "history",
    indexedTo = [head, head],
  }) {
    const indexer = createIndexer({
      chains: [
        devnetChain({
          rpcUrls: ["http://127.0.0.1:1"],
          staleAfterMs: 60_000,
          tokens: [
            { name: "usdt", address, decimals: 6 },
            { name: "gold", address: "0x00000000000000000000000000000000000000bb", decimals: 6 },
          ],
        }),
      ],
      database: await createUrl(),
    });
    onTestFinished(() => indexer.close());
    const { kysely, dialect } = await indexer.database();
    const row = await kysely
      .updateTable("indexer_chains")
      .set((set) => ({
        state,
        problem,
        head_number: head,
        finalized_number: head - 10,
        seen_at_ms: sql<number>`${dialect.nowMs()} - ${sql.lit(seenAgoMs)}`,
        progress_at_ms: set("progress_at_ms", "-", progressAgoMs),
      }))
      .returning("chain_id")
      .execute();
    expect(row).toHaveLength(1);
    const tokens = await kysely.selectFrom("indexer_tokens").select("id").orderBy("id").execute();
    for (const [index, { id }] of tokens.entries()) {
      const next = (indexedTo[index] ?? head) + 1;
      await kysely
        .insertInto("indexer_ranges")
        .values({ token_id: id, from_block: 0, next_block: next })
        .execute();
    }
    return indexer;
  }

  it.each([
    { staleFor: "less than its limit", progressAgoMs: 50_000, health: "healthy" },
    { staleFor: "more than its limit", progressAgoMs: 100_000, health: "degraded" },
    { staleFor: "five times its limit", progressAgoMs: 301_000, health: "unhealthy" },
  ])("is $health without a new block for $staleFor", async ({ progressAgoMs, health }) => {
    const indexer = await openScene({ progressAgoMs });
    expect((await indexer.status()).chains[0]).toMatchObject({ health });
    expect(await indexer.readHealth()).toMatchObject({ status: health });
  });

  it("reports no head below the indexed block when the writer advances between two reads", async () => {
    const indexer = await openScene({ indexedTo: [head + 3, head + 1] });
    expect((await indexer.status()).chains[0]).toMatchObject({ head: head + 3, lagBlocks: 2 });
  });

  it.each([
    { reason: "is not seen for a while", seenAgoMs: 16_000, problem: null, health: "degraded" },
    { reason: "has just had a problem", seenAgoMs: 0, problem: "No node", health: "healthy" },
    {
      reason: "has just had a problem in history",
      state: "history",
      seenAgoMs: 0,
      problem: "No node",
      health: "healthy",
    },
  ] as const)("has no lag where its writer $reason", async ({ health, ...facts }) => {
    const indexer = await openScene({ ...facts, indexedTo: [head, head - 1] });
    const status = await indexer.status();
    expect(status.chains[0]).toMatchObject({ health, head, lagBlocks: undefined });
    expect((await indexer.readHealth()).tokens.map(({ lag }) => lag)).toEqual([
      undefined,
      undefined,
    ]);
  });

  it("has a lag while its writer waits for added tokens or a range, and while final blocks are in doubt", async () => {
    const waiting = await openScene({ seenAgoMs: 6_000, indexedTo: [head, head - 1] });
    expect((await waiting.status()).chains[0]).toMatchObject({ lagBlocks: 1 });
    const reading = await openScene({
      state: "history",
      seenAgoMs: 16_000,
      indexedTo: [head, head - 1],
    });
    expect((await reading.status()).chains[0]).toMatchObject({ lagBlocks: 1 });
    const doubted = await openScene({ problem: "No node" });
    const { transaction, dialect } = await doubted.database();
    const { chainId } = devnetChain({ rpcUrls: [] });
    await transaction((tx) =>
      updateChecks(tx, dialect, { chainId, news: { doubted_from: head - 2 } }),
    );
    expect((await doubted.status()).chains[0]).toMatchObject({ lagBlocks: 3 });
  });

  it("is degraded while one of its tokens lags far behind", async () => {
    const indexer = await openScene({ indexedTo: [head, head - 500] });
    expect((await indexer.status()).chains[0]).toMatchObject({
      health: "degraded",
      problem: "gold is far behind the head",
      tokens: [{ health: "healthy" }, { health: "degraded" }],
    });
    expect(await indexer.readHealth()).toMatchObject({ status: "degraded" });
  });
});
