import { describe, expect, it } from "vitest";
import type { Indexer } from "../indexer.ts";
import { addRequest } from "../store/requests.ts";
import { enginesByDay } from "../testing/engines.ts";
import { type Fault, type FaultProxy, honest, startFaultProxy } from "../testing/fault-proxy.ts";
import { finalDepth } from "../testing/final-depth.ts";
import { type UsedChain, waitUntilDone } from "../testing/maintenance-scene.ts";
import { expectExact } from "../testing/oracle.ts";
import { startFastIndexer, startUsedChain, usdtOf } from "../testing/scene.ts";

/** A node that answers for no range. */
const withoutRanges: Fault = async ({ calls, forward, reply, response }) => {
  if (JSON.stringify(calls).includes("fromBlock")) response.destroy();
  else reply(await forward());
};

describe.each(enginesByDay)("events beside a reindex, on $engine", ({ createUrl }) => {
  it("announce blocks that come during a reindex, where the newest block is final", async () => {
    const devnet = await startUsedChain(20);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    let isHeld = false;
    const isFinalAtOnce: Fault = async ({ calls, forward, reply, response }) => {
      if (isHeld && JSON.stringify(calls).includes("fromBlock")) return void response.destroy();
      const answers = await forward();
      const latest = answers[calls.findIndex(({ params }) => params[0] === "latest")];
      const isFinal = (id: number) =>
        calls.some((call) => call.id === id && call.params[0] === "finalized");
      reply(answers.map((answer) => (isFinal(answer.id) ? { ...latest, id: answer.id } : answer)));
    };
    proxy.set(isFinalAtOnce);
    const indexer = await startFastIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      chain: { finality: { finalizedTag: true } },
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const seller = devnet.accounts.seller.address;
    await devnet.mint({ to: seller, amount: 1n });
    await expectExact(indexer, devnet, usdtOf(devnet));
    isHeld = true;
    await reindexAll(indexer);
    for (let amount = 2n; amount <= 5n; amount++) await devnet.mint({ to: seller, amount });
    const head = Number(await devnet.client.getBlockNumber());
    await expect
      .poll(async () => (await indexer.status()).chains[0]?.finalized, { timeout: 20_000 })
      .toBe(head);
    isHeld = false;
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect(await readAnnounced(indexer, devnet)).toEqual([1n, 2n, 3n, 4n, 5n]);
  });

  it("announce nothing twice when the chain falls behind during a reindex", async () => {
    const { devnet, proxy, indexer } = await startWithoutRanges();
    await reindexAll(indexer);
    await fallBehind({ devnet, proxy });
    proxy.set(honest);
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect(await readAnnounced(indexer, devnet)).toEqual([1n, 2n, 3n, 4n, 5n]);
  });

  it("announce nothing twice when a reindex comes after the chain has fallen behind", async () => {
    const { devnet, proxy, indexer } = await startWithoutRanges();
    await fallBehind({ devnet, proxy });
    await expect
      .poll(async () => (await indexer.status()).chains[0]?.state, { timeout: 20_000 })
      .toBe("history");
    await reindexAll(indexer);
    proxy.set(honest);
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect(await readAnnounced(indexer, devnet)).toEqual([1n, 2n, 3n, 4n, 5n]);
  });

  it("lead a reader to the chain's transfers where a rewind comes before blocks are read anew", async () => {
    const { devnet, proxy, indexer } = await startWithoutRanges();
    const reader = await startReader(indexer, devnet);
    await reindexAll(indexer);
    // Some of the missing blocks are above it, some below.
    await rewind(indexer, Number(await devnet.client.getBlockNumber()) - finalDepth - 1);
    await reader.read();
    proxy.set(honest);
    await expectExact(indexer, devnet, usdtOf(devnet));
    await reader.read();
    expect(reader.faults).toEqual([]);
    expect(reader.amounts()).toEqual([1n, 2n, 3n, 4n]);
  });

  it("lead a reader to transfers that were never announced, where a rewind comes before they are read anew", async () => {
    const devnet = await startUsedChain(20);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const indexer = await startFastIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
    await expectExact(indexer, devnet, usdtOf(devnet));
    await devnet.mine(finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
    const reader = await startReader(indexer, devnet, devnet.accounts.others[0]);
    const amounts = reader.amounts();
    expect(amounts.length).toBeGreaterThan(3);
    proxy.set(withoutRanges);
    await reindexAll(indexer);
    await rewind(indexer, Number(await devnet.client.getBlockNumber()) - finalDepth - 1);
    await reader.read();
    proxy.set(honest);
    await expectExact(indexer, devnet, usdtOf(devnet));
    await reader.read();
    expect(reader.faults).toEqual([]);
    expect(reader.amounts()).toEqual(amounts);
  });

  it("leave a reader at its place where a rewind comes above all blocks that are missing", async () => {
    const { devnet, proxy, indexer } = await startWithoutRanges();
    const reader = await startReader(indexer, devnet);
    await reindexAll(indexer);
    await rewind(indexer, Number(await devnet.client.getBlockNumber()));
    await reader.read();
    proxy.set(honest);
    await expectExact(indexer, devnet, usdtOf(devnet));
    await reader.read();
    expect(reader.amounts()).toEqual([1n, 2n, 3n, 4n]);
    expect(reader).toMatchObject({ faults: [], gaps: [] });
  });

  it("leave a reader at its place where blocks are missing of a token that is not configured", async () => {
    const { devnet, proxy, indexer } = await startWithoutRanges();
    const reader = await startReader(indexer, devnet);
    const { kysely } = await indexer.database();
    const chain_id = (await indexer.status()).chains[0]?.chainId ?? 0;
    const { id } = await kysely
      .insertInto("indexer_tokens")
      .values({ chain_id, address: new Uint8Array(20), name: "old", opens_at_zero: 0, revision: 0 })
      .returning("id")
      .executeTakeFirstOrThrow();
    const head = Number(await devnet.client.getBlockNumber());
    await kysely
      .insertInto("indexer_ranges")
      .values({ token_id: id, from_block: 2, next_block: head })
      .execute();
    await rewind(indexer, head - finalDepth - 1);
    await reader.read();
    proxy.set(honest);
    await expectExact(indexer, devnet, usdtOf(devnet));
    await reader.read();
    expect(reader.amounts()).toEqual([1n, 2n, 3n, 4n]);
    expect(reader).toMatchObject({ faults: [], gaps: [] });
  });

  async function rewind(indexer: Indexer, from: number): Promise<void> {
    const { kysely, dialect } = await indexer.database();
    const chainId = (await indexer.status()).chains[0]?.chainId ?? 0;
    const id = await addRequest(kysely, dialect, { chainId, kind: "rewind", from });
    await waitUntilDone(indexer, id);
  }

  /** A reader of an account's history that follows its events, and reads anew after a gap. */
  async function startReader(
    indexer: Indexer,
    devnet: UsedChain,
    { address } = devnet.accounts.seller,
  ) {
    const owner = {
      ...usdtOf(devnet),
      address: `0x${address.slice(2).toLowerCase()}` as const,
    };
    const known = new Map<string, bigint>();
    const faults: string[] = [];
    const gaps: number[] = [];
    const keyOfTransfer = (each: { blockHash: string; logIndex: number }) =>
      `${each.blockHash} ${each.logIndex}`;
    async function readHistory() {
      known.clear();
      const page = { ...owner, fromMs: 0, sort: "asc", limit: 100 } as const;
      for (const transfer of await indexer.readTransfers(page))
        known.set(keyOfTransfer(transfer), transfer.amount);
    }
    let place = await indexer.readLastEventId();
    await readHistory();
    return {
      faults,
      gaps,
      amounts: () => [...known.values()].sort(),
      async read() {
        const page = await indexer.readEvents({ ...owner, after: place, limit: 100 });
        place = page.lastId;
        if (page.isIncomplete) {
          gaps.push(place);
          return readHistory();
        }
        for (const { type, transfer } of page.events) {
          const key = keyOfTransfer(transfer);
          const isNew = type === "transfer";
          if (known.has(key) === isNew) faults.push(`${type} of ${transfer.amount}`);
          if (isNew) known.set(key, transfer.amount);
          else known.delete(key);
        }
      },
    };
  }

  /** A service that announced four final transfers. Its node answers for no range any more. */
  async function startWithoutRanges() {
    const devnet = await startUsedChain();
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const indexer = await startFastIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const to = devnet.accounts.seller.address;
    for (let amount = 1n; amount <= 4n; amount++) await devnet.mint({ to, amount });
    await devnet.mine(finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
    proxy.set(withoutRanges);
    return { devnet, proxy, indexer };
  }

  /** A fifth transfer, and more blocks than live would read, come while the node is away. */
  async function fallBehind({ devnet, proxy }: { devnet: UsedChain; proxy: FaultProxy }) {
    proxy.cut();
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 5n });
    await devnet.mine(200);
    proxy.mend();
  }

  /** Resolves when all blocks that are final are forgotten. */
  async function reindexAll(indexer: Indexer): Promise<void> {
    const { kysely, dialect } = await indexer.database();
    const chainId = (await indexer.status()).chains[0]?.chainId ?? 0;
    await waitUntilDone(
      indexer,
      await addRequest(kysely, dialect, { chainId, kind: "reindex", from: 0 }),
    );
  }

  /** The amounts that the seller was announced, those of retractions negative. */
  async function readAnnounced(indexer: Indexer, devnet: UsedChain): Promise<bigint[]> {
    const address = devnet.accounts.seller.address.toLowerCase();
    const question = { ...usdtOf(devnet), after: 0, limit: 100 };
    const { events } = await indexer.readEvents({ ...question, address: `0x${address.slice(2)}` });
    return events.map(({ type, transfer: { amount } }) => (type === "transfer" ? amount : -amount));
  }
});
