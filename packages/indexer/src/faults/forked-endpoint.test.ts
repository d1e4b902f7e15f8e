import { toHex } from "viem";
import { describe, expect, it, onTestFinished } from "vitest";
import { devnetChain } from "../chains/indexer-chain.ts";
import { createIndexer } from "../create-indexer.ts";
import type { Indexer } from "../indexer.ts";
import { enginesByDay } from "../testing/engines.ts";
import { changing, startFaultProxy } from "../testing/fault-proxy.ts";
import { finalDepth } from "../testing/final-depth.ts";
import { expectExact, expectVerified } from "../testing/oracle.ts";
import { startFastIndexer, startFork, startUsedChain, usdtOf } from "../testing/scene.ts";

/** A busy machine must not silence endpoints that have a vote. */
const patient = { requestTimeoutMs: 12_000 };
const patience = { timeout: 60_000 };

describe.each(enginesByDay)("an endpoint on a fork of its own, on $engine", ({ createUrl }) => {
  it("verifies nothing of it when it is asked first, and is outvoted by two others", async () => {
    const { devnet, fork, forkedAt } = await startForked();
    await devnet.mine(finalDepth + 3);
    const [first, second, third] = await Promise.all([
      startFaultProxy(fork.rpcUrl),
      startFaultProxy(devnet.rpcUrl),
      startFaultProxy(devnet.rpcUrl),
    ]);
    const indexer = await startFastIndexer({
      rpcUrls: [first.url, second.url, third.url],
      database: await createUrl(),
      chain: { ...patient, verifyAfterMs: 400 },
    });
    const chain = await expectUnverified(
      indexer,
      forkedAt,
      (status) => status?.doubtedFrom !== undefined,
    );
    expect(chain).toMatchObject({ health: "unhealthy", state: "live" });
    expect(chain?.lagBlocks).toBeGreaterThan(0);

    // The fork stays the longer one: its endpoint is asked first, and not believed.
    await fork.mint({ to: fork.accounts.seller.address, amount: 5n });
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 7n });
    await expectExact(indexer, devnet, usdtOf(devnet));
    await devnet.mine(finalDepth);
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    await expect
      .poll(() => readChain(indexer), patience)
      .toMatchObject({ health: "healthy", doubtedFrom: undefined });

    // Back on the chain of the others, it is believed again, also alone.
    first.setUpstream(devnet.rpcUrl);
    await devnet.mine(finalDepth);
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    second.cut();
    third.cut();
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 8n });
    await expectExact(indexer, devnet, usdtOf(devnet));
  });

  it("is taken back on a new database, where no older block is known", async () => {
    const { devnet, fork, forkedAt } = await startForked();
    await devnet.mine(finalDepth + 3);
    const startBlock = forkedAt + 1;
    const tokens = [{ name: "usdt", address: devnet.token, startBlock, decimals: 6 }];
    const indexer = await startFastIndexer({
      rpcUrls: [fork.rpcUrl, devnet.rpcUrl, devnet.rpcUrl],
      database: await createUrl(),
      chain: { ...patient, verifyAfterMs: 400, tokens },
    });
    await expectUnverified(indexer, forkedAt, (status) => status?.doubtedFrom !== undefined);
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 7n });
    await expectExact(indexer, devnet, usdtOf(devnet), { fromBlock: BigInt(startBlock) });
    await expect
      .poll(() => readChain(indexer), patience)
      .toMatchObject({ health: "healthy", state: "live", doubtedFrom: undefined });
  });

  it("is live above the heads of the others, and waits for them to be verified", async () => {
    const { devnet, fork, forkedAt } = await startForked();
    const indexer = await startFastIndexer({
      rpcUrls: [fork.rpcUrl, devnet.rpcUrl, devnet.rpcUrl],
      database: await createUrl(),
      chain: { ...patient, verifyAfterMs: 50 },
    });
    const chain = await expectUnverified(indexer, forkedAt, (status) =>
      /endpoint 1 alone/.test(status?.problem ?? ""),
    );
    expect(chain).toMatchObject({ health: "degraded", doubtedFrom: undefined });

    await devnet.mint({ to: devnet.accounts.seller.address, amount: 7n });
    await devnet.mine(3 * finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
  });

  it("is undone when the others answer, if it was verified while they were silent", async () => {
    const { devnet, fork, forkedAt } = await startForked();
    await devnet.mine(finalDepth + 3);
    const [second, third] = [
      await startFaultProxy(devnet.rpcUrl),
      await startFaultProxy(devnet.rpcUrl),
    ];
    second.cut();
    third.cut();
    const indexer = await startFastIndexer({
      rpcUrls: [fork.rpcUrl, second.url, third.url],
      database: await createUrl(),
      chain: { ...patient, verifyAfterMs: 50 },
    });
    await expectVerified(indexer, fork, usdtOf(fork), finalDepth);
    expect((await readChain(indexer))?.tokens[0]?.verifiedTo).toBeGreaterThan(forkedAt);

    // The fork has no new block.
    second.mend();
    third.mend();
    await devnet.mine(finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
  });

  it("is undone on a new database, where it was verified and no older block is known", async () => {
    const { devnet, fork, forkedAt } = await startForked();
    await devnet.mine(finalDepth + 3);
    const [second, third] = [
      await startFaultProxy(devnet.rpcUrl),
      await startFaultProxy(devnet.rpcUrl),
    ];
    second.cut();
    third.cut();
    const startBlock = forkedAt + 1;
    const tokens = [{ name: "usdt", address: devnet.token, startBlock, decimals: 6 }];
    const indexer = await startFastIndexer({
      rpcUrls: [fork.rpcUrl, second.url, third.url],
      database: await createUrl(),
      chain: { ...patient, verifyAfterMs: 50, tokens },
    });
    const verifiedTo = async () => (await readChain(indexer))?.tokens[0]?.verifiedTo ?? 0;
    await expect.poll(verifiedTo, patience).toBeGreaterThan(forkedAt);
    second.mend();
    third.mend();
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 7n });
    await devnet.mine(finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet), { fromBlock: BigInt(startBlock) });
  });

  it("is neither believed nor outvoted beside one other: nothing of either is verified", async () => {
    const { devnet, fork, forkedAt } = await startForked();
    await devnet.mine(finalDepth + 3);
    const proxy = await startFaultProxy(fork.rpcUrl);
    const indexer = await startFastIndexer({
      rpcUrls: [proxy.url, devnet.rpcUrl],
      database: await createUrl(),
      chain: { ...patient, verifyAfterMs: 50 },
    });
    const chain = await expectUnverified(indexer, forkedAt, (status) =>
      /endpoint 2 has another/.test(status?.problem ?? ""),
    );
    expect(chain).toMatchObject({ health: "degraded" });

    proxy.setUpstream(devnet.rpcUrl);
    await devnet.mine(2 * finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
  });

  it("is not believed after a restart when it was outvoted, also where the chain has fallen behind", async () => {
    const devnet = await startUsedChain(30);
    const fork = await startFork(devnet, 10n);
    const database = await createUrl();
    const before = await startFastIndexer({ rpcUrls: [devnet.rpcUrl], database });
    await expectExact(before, devnet, usdtOf(devnet));
    await before.close();
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 7n });
    await devnet.mine(200);
    await fork.mine(300);
    await fork.mint({ to: fork.accounts.seller.address, amount: 999n });
    await fork.mine(2 * finalDepth);
    const indexer = await startFastIndexer({
      rpcUrls: [fork.rpcUrl, devnet.rpcUrl, devnet.rpcUrl],
      database,
      chain: { ...patient, verifyAfterMs: 3_600_000 },
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
  });

  it.each(["live", "history"])(
    "gives no balance to a process that only serves, in %s",
    async (state) => {
      const devnet = await startUsedChain(20);
      const fork = await startFork(devnet, 15n);
      const { seller } = devnet.accounts;
      await devnet.mint({ to: seller.address, amount: 7n });
      await fork.mint({ to: seller.address, amount: 999n });
      await devnet.mine(finalDepth);
      await fork.mine(4 * finalDepth);
      const database = await createUrl();
      const head = Number(await devnet.client.getBlockNumber());
      // An address may have had a balance before the first indexed block.
      const tokens = [{ name: "usdt", address: devnet.token, startBlock: head - 8, decimals: 6 }];
      const chain = { ...patient, tokens };
      const writer = await startFastIndexer({ rpcUrls: [devnet.rpcUrl], database, chain });
      await expectExact(writer, devnet, usdtOf(devnet), { fromBlock: BigInt(head - 8) });
      await writer.close();
      const rpcUrls = [fork.rpcUrl, devnet.rpcUrl, devnet.rpcUrl];
      const reader = createIndexer({ chains: [devnetChain({ rpcUrls, ...chain })], database });
      onTestFinished(() => reader.close());
      const { kysely } = await reader.database();
      if (state === "history") await kysely.deleteFrom("indexer_window").execute();
      const { buyer } = devnet.accounts;
      for (const [address, amount] of [
        [seller.address, 7n],
        [buyer.address, 1_000_000n],
      ] as const)
        expect(await reader.readBalance({ ...usdtOf(devnet), address })).toBe(amount);
    },
  );

  it("is not asked by the spot check while it is outvoted", async () => {
    const devnet = await startUsedChain();
    const fork = await startFork(devnet, 8n);
    await fork.mine(6 * finalDepth);
    const [first, second, third] = await Promise.all([
      startFaultProxy(fork.rpcUrl),
      startFaultProxy(devnet.rpcUrl),
      startFaultProxy(devnet.rpcUrl),
    ]);
    const found: unknown[] = [];
    const indexer = await startFastIndexer({
      rpcUrls: [first.url, second.url, third.url],
      database: await createUrl(),
      chain: { ...patient, verifyAfterMs: 100 },
      spotCheck: { everyMs: 20, addresses: 5 },
      onBalanceDifference: (difference) => found.push(difference),
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    const balances = ({ requests }: typeof first) =>
      requests.flat().filter(({ method }) => method === "eth_call").length;
    const before = balances(first);
    const others = balances(second) + balances(third);
    await expect
      .poll(() => balances(second) + balances(third) - others, patience)
      .toBeGreaterThan(10);
    expect(balances(first)).toBe(before);
    expect(found).toEqual([]);
  });

  it("is looked for by one call of each endpoint and round, by none while no block is new", async () => {
    const devnet = await startUsedChain();
    const [first, second, third] = await Promise.all([
      startFaultProxy(devnet.rpcUrl),
      startFaultProxy(devnet.rpcUrl),
      startFaultProxy(devnet.rpcUrl),
    ]);
    const indexer = await startFastIndexer({
      rpcUrls: [first.url, second.url, third.url],
      database: await createUrl(),
      chain: { ...patient, verifyAfterMs: 50 },
    });
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    // Votes and second readings name a number. The pool's own comparison of heads does not.
    const votes = () =>
      second.requests
        .flat()
        .filter(({ method, params }) => method === "eth_getBlockByNumber" && params[0] !== "latest")
        .length;
    const before = votes();
    const expectPolls = async () => {
      const polls = first.requests.length;
      await expect.poll(() => first.requests.length - polls, patience).toBeGreaterThan(40);
    };
    await expectPolls();
    expect(votes()).toBe(before);

    await devnet.mine();
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    await expectPolls();
    // One vote, and up to two of five readings of a block without transfers, of two calls each.
    expect(votes()).toBeLessThanOrEqual(before + 6);
  });

  it("does not carry the index off by a head far above the others, and leaves no trace", async () => {
    const { devnet, first, second, third } = await startFarFork();
    const indexer = await startFastIndexer({
      rpcUrls: [first.url, second.url, third.url],
      database: await createUrl(),
      chain: { ...patient, maxRewindBlocks: 20, verifyAfterMs: 100 },
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    first.cut();
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 7n });
    await devnet.mine(finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
  });

  it.each([
    ["live", "answers"],
    ["live", "is dead"],
    ["history", "answers"],
    ["history", "is dead"],
  ])(
    "is taken back when the others are back, if it was read alone far above them, in %s, and %s",
    async (state, end) => {
      const { devnet, fork, forkedAt, first, second, third } = await startFarFork();
      const database = await createUrl();
      const scene = { rpcUrls: [first.url, second.url, third.url], database };
      second.cut();
      third.cut();
      const alone = await startFastIndexer({
        ...scene,
        chain: { ...patient, maxRewindBlocks: 20, verifyAfterMs: 3_600_000 },
      });
      await expectExact(alone, fork, usdtOf(fork));
      const { kysely } = await alone.database();
      if (state === "history") await kysely.deleteFrom("indexer_window").execute();
      await alone.close();
      if (end === "is dead") first.cut();
      second.mend();
      third.mend();
      const indexer = await startFastIndexer({
        ...scene,
        chain: { ...patient, maxRewindBlocks: 20, verifyAfterMs: 100 },
      });
      const indexedTo = async () => (await readChain(indexer))?.tokens[0]?.indexedTo;
      await expect.poll(indexedTo, patience).toBe(forkedAt);
      await devnet.mint({ to: devnet.accounts.seller.address, amount: 7n });
      await devnet.mine(finalDepth);
      await expectExact(indexer, devnet, usdtOf(devnet));
      await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    },
  );

  it("is taken back in history by a vote after the first, once the others answer", async () => {
    const { devnet, fork, forkedAt, first, second, third } = await startFarFork();
    const database = await createUrl();
    const scene = { rpcUrls: [first.url, second.url, third.url], database };
    // Nodes that have stopped deny nothing: a busy machine must not make these old.
    for (const proxy of [second, third])
      proxy.set(
        changing("eth_getBlockByNumber", (answer, { params }) => {
          const fresh = { timestamp: toHex(Math.floor(Date.now() / 1_000)) };
          const result = Object.assign({}, answer.result, fresh);
          return params[0] === "latest" ? { ...answer, result } : answer;
        }),
      );
    second.cut();
    third.cut();
    const alone = await startFastIndexer({
      ...scene,
      chain: { ...patient, maxRewindBlocks: 20, verifyAfterMs: 3_600_000 },
    });
    await expectExact(alone, fork, usdtOf(fork));
    const { kysely } = await alone.database();
    await kysely.deleteFrom("indexer_window").execute();
    await alone.close();
    const indexer = await startFastIndexer({
      ...scene,
      chain: { ...patient, maxRewindBlocks: 20, verifyAfterMs: 100 },
    });
    await expect.poll(async () => (await readChain(indexer))?.state, patience).toBe("history");
    second.mend();
    third.mend();
    const indexedTo = async () => (await readChain(indexer))?.tokens[0]?.indexedTo;
    await expect.poll(indexedTo, patience).toBe(forkedAt);
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 7n });
    await devnet.mine(finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
  });

  it("is asked again where nothing is new, and read once it is back and the others are dead", async () => {
    const { devnet, fork } = await startForked();
    await devnet.mine(finalDepth + 3);
    const [first, second, third] = await Promise.all([
      startFaultProxy(fork.rpcUrl),
      startFaultProxy(devnet.rpcUrl),
      startFaultProxy(devnet.rpcUrl),
    ]);
    const indexer = await startFastIndexer({
      rpcUrls: [first.url, second.url, third.url],
      database: await createUrl(),
      chain: { ...patient, verifyAfterMs: 100 },
    });
    await devnet.mine(finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    second.cut();
    third.cut();
    first.setUpstream(devnet.rpcUrl);
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 7n });
    await expectExact(indexer, devnet, usdtOf(devnet));
  });

  it("is not let in while the others are silent: final transfers stay final", async () => {
    const { devnet, fork } = await startForked();
    await devnet.mine(finalDepth + 3);
    const [first, second, third] = await Promise.all([
      startFaultProxy(fork.rpcUrl),
      startFaultProxy(devnet.rpcUrl),
      startFaultProxy(devnet.rpcUrl),
    ]);
    const indexer = await startFastIndexer({
      rpcUrls: [first.url, second.url, third.url],
      database: await createUrl(),
      chain: { ...patient, verifyAfterMs: 100 },
    });
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 7n });
    await devnet.mine(finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    second.cut();
    third.cut();
    const votes = () =>
      first.requests
        .flat()
        .filter(({ method, params }) => method === "eth_getBlockByNumber" && params[0] !== "latest")
        .length;
    const before = votes();
    await expect.poll(() => votes() - before, { timeout: 60_000 }).toBeGreaterThan(5);
    expect(await readChain(indexer)).toMatchObject({ state: "live", doubtedFrom: undefined });
    const { address } = devnet.accounts.seller;
    const asked = { ...usdtOf(devnet), address, fromMs: 0, sort: "asc", limit: 10 } as const;
    expect(await indexer.readTransfers(asked)).toMatchObject([{ finalized: true }]);
  });

  it("is asked again after a start in history, where the others die at once", async () => {
    const { devnet, fork } = await startForked();
    await devnet.mine(finalDepth + 3);
    const database = await createUrl();
    const before = await startFastIndexer({ rpcUrls: [devnet.rpcUrl], database });
    await expectExact(before, devnet, usdtOf(devnet));
    await before.close();
    const reader = createIndexer({
      chains: [devnetChain({ rpcUrls: [devnet.rpcUrl] })],
      database,
    });
    onTestFinished(() => reader.close());
    const { kysely } = await reader.database();
    await kysely.deleteFrom("indexer_window").execute();
    await kysely.updateTable("indexer_chains").set({ state: "history" }).execute();
    const first = await startFaultProxy(fork.rpcUrl);
    const others = [await startFaultProxy(devnet.rpcUrl), await startFaultProxy(devnet.rpcUrl)];
    let votes = 0;
    for (const other of others) {
      let hasVoted = false;
      other.set(async ({ calls, forward, reply, response }) => {
        if (hasVoted) return void response.destroy();
        reply(await forward());
        hasVoted = calls.some(
          ({ method, params }) => method === "eth_getBlockByNumber" && params[0] !== "latest",
        );
        if (hasVoted) votes += 1;
      });
    }
    const indexer = await startFastIndexer({
      rpcUrls: [first.url, ...others.map(({ url }) => url)],
      database,
      chain: { ...patient, verifyAfterMs: 100 },
    });
    await expect.poll(() => votes, { timeout: 30_000 }).toBe(2);
    first.setUpstream(devnet.rpcUrl);
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 7n });
    await devnet.mine(finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
  });

  it("is none that has stopped: two of these take no true block back while the first is silent", async () => {
    const devnet = await startUsedChain();
    const stopped = await startFork(devnet, await devnet.client.getBlockNumber());
    const [first, second, third] = await Promise.all([
      startFaultProxy(devnet.rpcUrl),
      startFaultProxy(stopped.rpcUrl),
      startFaultProxy(stopped.rpcUrl),
    ]);
    for (const proxy of [second, third])
      proxy.set(
        changing("eth_getBlockByNumber", (answer, { params }) => {
          const old = { timestamp: toHex(Math.floor(Date.now() / 1_000) - 7_200) };
          const result = Object.assign({}, answer.result, old);
          return params[0] === "latest" ? { ...answer, result } : answer;
        }),
      );
    await devnet.mine(200);
    const indexer = await startFastIndexer({
      rpcUrls: [first.url, second.url, third.url],
      database: await createUrl(),
      chain: { ...patient, verifyAfterMs: 100 },
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const indexedTo = async () => (await readChain(indexer))?.tokens[0]?.indexedTo ?? 0;
    const before = await indexedTo();
    first.cut();
    const votes = second.requests.length;
    const { kysely } = await indexer.database();
    await expect.poll(() => second.requests.length - votes, patience).toBeGreaterThan(40);
    expect(await kysely.selectFrom("indexer_requests").select("kind").execute()).toEqual([]);
    expect(await indexedTo()).toBe(before);
  });

  it("raises doubt with its head below the final block, with the true lag, and ends it", async () => {
    const devnet = await startUsedChain();
    const forkedAt = (await devnet.client.getBlockNumber()) - BigInt(finalDepth);
    const fork = await startFork(devnet, forkedAt);
    await fork.mine(finalDepth);
    for (let amount = 1n; amount <= 9n; amount++)
      await devnet.mint({ to: devnet.accounts.seller.address, amount });
    await devnet.mine(2 * finalDepth);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const indexer = await startFastIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      chain: { verifyAfterMs: 3_600_000 },
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    await fork.mine(5);
    proxy.setUpstream(fork.rpcUrl);
    await expect.poll(async () => (await readChain(indexer))?.doubtedFrom, patience).toBeDefined();
    const chain = await readChain(indexer);
    expect(chain).toMatchObject({ health: "unhealthy", state: "live" });
    expect(chain?.lagBlocks).toBeGreaterThanOrEqual(2 * finalDepth);

    proxy.setUpstream(devnet.rpcUrl);
    await expect
      .poll(() => readChain(indexer), patience)
      .toMatchObject({ doubtedFrom: undefined, state: "live", health: "healthy", lagBlocks: 0 });
    await expectExact(indexer, devnet, usdtOf(devnet));
  });
});

/** A chain, and a longer fork of it with a transfer of its own. */
async function startForked() {
  const devnet = await startUsedChain();
  const head = await devnet.client.getBlockNumber();
  const fork = await startFork(devnet, head);
  await fork.mint({ to: fork.accounts.seller.address, amount: 999n });
  await fork.mine(4 * finalDepth);
  return { devnet, fork, forkedAt: Number(head) };
}

/** The same with a fork that is far longer, behind the first of three endpoints. */
async function startFarFork() {
  const { devnet, fork, forkedAt } = await startForked();
  await fork.mine(200);
  await fork.mint({ to: fork.accounts.seller.address, amount: 999n });
  await fork.mine(finalDepth);
  const [first, second, third] = await Promise.all([
    startFaultProxy(fork.rpcUrl),
    startFaultProxy(devnet.rpcUrl),
    startFaultProxy(devnet.rpcUrl),
  ]);
  return { devnet, fork, forkedAt, first, second, third };
}

async function readChain(indexer: Indexer) {
  return (await indexer.status()).chains[0];
}

/** Waits for a sign in the status. No block of the fork is verified before. */
async function expectUnverified(
  indexer: Indexer,
  forkedAt: number,
  sign: (chain: Awaited<ReturnType<typeof readChain>>) => boolean,
) {
  let chain: Awaited<ReturnType<typeof readChain>>;
  await expect
    .poll(
      async () => {
        chain = await readChain(indexer);
        const verifiedTo = chain?.tokens[0]?.verifiedTo ?? 0;
        if (verifiedTo > forkedAt) return `verified up to ${verifiedTo}, forked at ${forkedAt}`;
        return sign(chain) ? "sign" : "no sign";
      },
      { ...patience, interval: 20 },
    )
    .toBe("sign");
  return chain;
}
