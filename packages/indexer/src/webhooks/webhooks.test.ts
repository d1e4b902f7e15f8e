import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { type Devnet, listen } from "@coinslot/devnet";
import { effort } from "@coinslot/devnet/effort";
import { useProgram } from "@coinslot/devnet/use-program";
import express from "express";
import { sql } from "kysely";
import { toHex } from "viem";
import { describe, expect, it, onTestFinished } from "vitest";
import { openKeyStore } from "../api/api-stores.ts";
import { createIndexerClient } from "../api/client/indexer-client.ts";
import { transferApi } from "../api/transfer-api.ts";
import type { Indexer } from "../indexer.ts";
import { addRequest } from "../store/requests.ts";
import { enginesByDay } from "../testing/engines.ts";
import { changing, honest, logsOf, startFaultProxy } from "../testing/fault-proxy.ts";
import { finalDepth } from "../testing/final-depth.ts";
import { waitUntilDone } from "../testing/maintenance-scene.ts";
import { expectExact } from "../testing/oracle.ts";
import {
  startFastIndexer,
  startFork,
  startIndexer,
  startUsedChain,
  stepRandomly,
  usdtOf,
} from "../testing/scene.ts";
import { randomOf } from "../testing/seeded-random.ts";
import {
  believe,
  openTransferReceiver,
  type ReceivedTransfer,
  webhookSecret,
} from "../testing/webhook-receiver.ts";
import { indexerWebhooks } from "./indexer-webhooks.ts";

const program = useProgram(new URL("../testing/indexer-program.ts", import.meta.url));
const patience = { timeout: 60_000, interval: 20 };

const open: typeof openTransferReceiver = async (...answer) => {
  const receiver = await openTransferReceiver(...answer);
  onTestFinished(() => receiver.close());
  return receiver;
};

const hook = (url: string, id = "deposits") => ({
  id,
  url,
  secret: webhookSecret,
  unsafeAllowPrivateAddresses: true,
});

const datingLogsLate = changing("eth_getLogs", (answer) => ({
  ...answer,
  result: logsOf(answer).map((log) => ({
    ...log,
    blockTimestamp: toHex(Number(log.blockTimestamp) + 3_600),
  })),
}));

/** Waits for the hand-over to live: from then on transfers are told. */
async function live(indexer: Indexer): Promise<void> {
  await expect.poll(async () => (await indexer.status()).chains[0]?.state, patience).toBe("live");
}

/** The transfers of the recipients from a block on, as the index has them: block and finality. */
async function indexed(
  indexer: Indexer,
  recipients: readonly string[],
  fromBlock: number,
): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const address of recipients) {
    const usdt = { blockchain: "devnet", token: "usdt", address: address.toLowerCase() } as const;
    const query = { ...usdt, address: usdt.address as `0x${string}`, fromMs: 0, limit: 1_000 };
    for (const transfer of await indexer.readTransfers({ ...query, sort: "asc" })) {
      if (transfer.blockNumber < fromBlock) continue;
      const key = `${transfer.transactionHash} ${transfer.transferIndex}`;
      found.set(key, `${transfer.blockHash} ${transfer.finalized ? "final" : "included"}`);
    }
  }
  return found;
}

/** As `indexed`, once all of it is final. */
async function untilFinal(
  indexer: Indexer,
  recipients: readonly string[],
  fromBlock: number,
): Promise<Map<string, string>> {
  const isFinal = (each: string) => each.endsWith("final");
  const read = () => indexed(indexer, recipients, fromBlock);
  await expect.poll(async () => [...(await read()).values()].every(isFinal), patience).toBe(true);
  return read();
}

describe.each(enginesByDay)("webhooks about addresses, on $engine", ({ engine, createUrl }) => {
  async function start(devnet: Devnet, url: string, database?: string) {
    const rpcUrls = [devnet.rpcUrl];
    const indexer = await startFastIndexer({
      rpcUrls,
      database: database ?? (await createUrl()),
      webhooks: [hook(url)],
    });
    await live(indexer);
    return { indexer, webhooks: indexerWebhooks(await indexer.database()) };
  }

  it("tell of a transfer at its inclusion and at its finality, with its facts", async () => {
    const devnet = await startUsedChain();
    const receiver = await open();
    const { webhooks } = await start(devnet, receiver.url);
    const [watched, other] = devnet.accounts.others.slice(4).map(({ address }) => address);
    expect(await webhooks.watch("deposits", [watched ?? ""])).toBe(1);
    await devnet.mint({ to: other ?? "0x", amount: 5n });
    await devnet.mint({ to: watched ?? "0x", amount: 7n });
    await expect
      .poll(() => receiver.received.map(({ type }) => type), patience)
      .toEqual(["transfer.included"]);
    await devnet.mine(finalDepth);
    await expect
      .poll(() => receiver.received.map(({ type }) => type), patience)
      .toEqual(["transfer.included", "transfer.final"]);
    const [included, final] = receiver.received;
    expect(final?.data).toEqual(included?.data);
    expect(included?.data).toMatchObject({
      blockchain: "devnet",
      chainId: devnet.chainId,
      token: "usdt",
      asset: devnet.token.toLowerCase(),
      amount: "7",
      to: watched?.toLowerCase(),
      addresses: [watched?.toLowerCase()],
      blockNumber: expect.any(Number),
      blockHash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      transactionHash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
    });
    expect(await webhooks.list()).toMatchObject([{ id: "whk_deposits", watched: 1, dead: 0 }]);
  });

  it("tell of addresses that a key of the receiver's owner has added over HTTP", async () => {
    const devnet = await startUsedChain();
    const receiver = await open();
    const indexer = await startFastIndexer({
      rpcUrls: [devnet.rpcUrl],
      database: await createUrl(),
      webhooks: [{ ...hook(receiver.url), owner: "shop" }],
    });
    await live(indexer);
    const { url, close } = await listen(express().use(transferApi(indexer)));
    onTestFinished(close);
    const keys = await openKeyStore(await indexer.database());
    const { key } = await keys.create({ owner: "shop" });
    const shop = createIndexerClient({ url, apiKey: key });

    const recipient = devnet.accounts.others[6]?.address ?? "0x";
    const change = { added: 1, removed: 0, watched: 1 };
    expect(await shop.changeWatchedAddresses("deposits", { add: [recipient] })).toEqual(change);
    const watched: string[] = [];
    for await (const each of shop.allWatchedAddresses("deposits")) watched.push(each);
    expect(watched).toEqual([recipient.toLowerCase()]);
    await devnet.mint({ to: recipient, amount: 7n });
    const ids = () => receiver.received.map(({ type, id }) => `${type} ${id}`);
    const included = /^transfer\.included evt_/;
    await expect.poll(ids, patience).toEqual([expect.stringMatching(included)]);
    // It is pending until its answer is recorded.
    const isDelivered = async () => (await shop.listWebhooks()).webhooks[0]?.pending === 0;
    await expect.poll(isDelivered, patience).toBe(true);
    expect(await shop.replayWebhooks("deposits", { from: 0 })).toEqual({ replayed: 1 });
    await expect.poll(() => ids().length, patience).toBe(2);
    expect(new Set(ids()).size).toBe(1);
  });

  it("take back a transfer whose block was replaced, and tell it again in its new one", async () => {
    const devnet = await startUsedChain();
    let status = 503;
    const receiver = await open((_, response) => void response.writeHead(status).end());
    const { webhooks } = await start(devnet, receiver.url);
    const recipient = devnet.accounts.others[5]?.address ?? "0x";
    await webhooks.watch("deposits", [recipient]);
    await devnet.mint({ to: recipient, amount: 7n });
    await expect.poll(() => receiver.received.length, patience).toBeGreaterThan(0);
    await devnet.reorg({ depth: 1 });
    await devnet.mine(2);
    // The later events wait behind the one that fails.
    expect(new Set(receiver.received.map(({ type }) => type))).toEqual(
      new Set(["transfer.included"]),
    );
    status = 204;
    const types = () => receiver.firstOnes().map(({ type }) => type);
    await expect.poll(types, patience).toEqual(["transfer.included", "transfer.reverted"]);
    const [included, reverted] = receiver.firstOnes();
    expect(reverted?.data).toEqual(included?.data);
    await devnet.mint({ to: recipient, amount: 7n });
    await devnet.mine(finalDepth);
    await expect
      .poll(types, patience)
      .toEqual(["transfer.included", "transfer.reverted", "transfer.included", "transfer.final"]);
  });

  it.each(["follows", "lags", "dates logs late"])(
    "tell of no transfer that is older than the first hand-over after a rewind of all, and a node that %s",
    async (node) => {
      const devnet = await startUsedChain();
      const proxy = await startFaultProxy(devnet.rpcUrl);
      const receiver = await open();
      const { indexer, webhooks } = await start({ ...devnet, rpcUrl: proxy.url }, receiver.url);
      const from = Number(await devnet.client.getBlockNumber()) - finalDepth + 1;
      const recipient = devnet.accounts.others[0]?.address ?? "0x";
      await webhooks.watch("deposits", [recipient]);
      await devnet.mint({ to: recipient, amount: 7n });
      await devnet.mine(finalDepth);
      const types = () => receiver.firstOnes().map(({ type }) => type);
      await expect.poll(types, patience).toEqual(["transfer.included", "transfer.final"]);
      if (node === "lags") proxy.setUpstream((await startFork(devnet, 5n)).rpcUrl);
      if (node === "dates logs late") proxy.set(datingLogsLate);
      const { kysely, dialect } = await indexer.database();
      const { chainId } = devnet;
      const request = await addRequest(kysely, dialect, { chainId, kind: "rewind", from: 0 });
      await waitUntilDone(indexer, request);
      if (node === "lags") {
        const indexedTo = async () => (await indexer.status()).chains[0]?.tokens[0]?.indexedTo;
        await expect.poll(indexedTo, patience).toBe(5);
        proxy.setUpstream(devnet.rpcUrl);
      }
      if (node === "dates logs late") {
        await live(indexer);
        proxy.set(honest);
      }
      await expectExact(indexer, devnet, usdtOf(devnet));
      await devnet.mint({ to: recipient, amount: 8n });
      await devnet.mine(finalDepth);
      await expectExact(indexer, devnet, usdtOf(devnet));
      await expect
        .poll(() => believe(receiver.firstOnes()), patience)
        .toEqual(await untilFinal(indexer, [recipient], from));
      expect(receiver.received.filter(({ data }) => data.blockNumber < from)).toEqual([]);
      expect(types().slice(0, 4)).toEqual([
        "transfer.included",
        "transfer.final",
        "transfer.reverted",
        "transfer.included",
      ]);
    },
  );

  it("tell of no block below the first hand-over, also where that was on a fork with higher numbers", async () => {
    const devnet = await startUsedChain();
    const forkedAt = await devnet.client.getBlockNumber();
    const ahead = await startFork(devnet, forkedAt);
    await ahead.mine(300);
    const proxy = await startFaultProxy(ahead.rpcUrl);
    const receiver = await open();
    const indexer = await startFastIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      webhooks: [hook(receiver.url)],
      chain: { maxRewindBlocks: 1_000 },
    });
    await expectExact(indexer, ahead, usdtOf(ahead));
    const from = Number(await ahead.client.getBlockNumber()) - finalDepth + 1;
    const recipient = devnet.accounts.others[4]?.address ?? "0x";
    await indexerWebhooks(await indexer.database()).watch("deposits", [recipient]);
    const replace = async (blocks: number) => {
      await devnet.mint({ to: recipient, amount: 7n });
      await devnet.mine(blocks);
      proxy.setUpstream(devnet.rpcUrl);
      const { kysely, dialect } = await indexer.database();
      const request = { chainId: devnet.chainId, kind: "rewind", from: Number(forkedAt) } as const;
      await waitUntilDone(indexer, await addRequest(kysely, dialect, request));
      await expectExact(indexer, devnet, usdtOf(devnet));
    };
    // The chain is shorter than the fork, and then longer.
    await replace(2 * finalDepth);
    await replace(400);
    await devnet.mint({ to: recipient, amount: 8n });
    await devnet.mine(finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect((await indexed(indexer, [recipient], Number(forkedAt))).size).toBe(3);
    await expect
      .poll(() => believe(receiver.firstOnes()), patience)
      .toEqual(await untilFinal(indexer, [recipient], from));
    expect(receiver.firstOnes().map(({ data }) => data.amount)).toEqual(["8", "8"]);
  });

  it("tell of no transfer of before its address was watched, after a rewind, too", async () => {
    const devnet = await startUsedChain();
    const receiver = await open();
    const { indexer, webhooks } = await start(devnet, receiver.url);
    const recipient = devnet.accounts.others[4]?.address ?? "0x";
    await devnet.mint({ to: recipient, amount: 7n });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const old = Number(await devnet.client.getBlockNumber());
    await webhooks.watch("deposits", [recipient]);
    await devnet.mint({ to: recipient, amount: 8n });
    await devnet.mine(finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
    await untilFinal(indexer, [recipient], old);
    const { kysely, dialect } = await indexer.database();
    const request = { chainId: devnet.chainId, kind: "rewind", from: old } as const;
    await waitUntilDone(indexer, await addRequest(kysely, dialect, request));
    await devnet.mint({ to: recipient, amount: 9n });
    await devnet.mine(finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
    const truth = await untilFinal(indexer, [recipient], old + 1);
    expect(truth.size).toBe(2);
    await expect.poll(() => believe(receiver.firstOnes()), patience).toEqual(truth);
    const reverted = receiver.received.filter(({ type }) => type === "transfer.reverted");
    expect(reverted.map(({ data }) => data.amount)).toEqual(["8"]);
    expect(receiver.received.filter(({ data }) => data.amount === "7")).toEqual([]);
  });

  it(
    "equal the index after random blocks, reorganisations and kills, with no event out of order",
    async () => {
      const random = randomOf(`webhooks on ${engine}`);
      const devnet = await startUsedChain(20);
      const receiver = await open();
      const database = await createUrl();
      const recipients = devnet.accounts.others.slice(0, 3).map(({ address }) => address);
      const first = await startIndexer({
        rpcUrls: [devnet.rpcUrl],
        database,
        webhooks: [hook(receiver.url)],
      });
      await live(first);
      await indexerWebhooks(await first.database()).watch("deposits", recipients);
      await first.close();
      const from = Number(await devnet.client.getBlockNumber()) + 1;
      // No reorganisation reaches below the first told block.
      await devnet.mine(finalDepth);
      for (let kill = 0; kill < 5 * effort; kill++) {
        const child = fork(program(), [devnet.rpcUrl, database, "100", receiver.url], {
          execArgv: [],
        });
        onTestFinished(() => void child.kill("SIGKILL"));
        const exited = once(child, "exit");
        await once(child, "message");
        for (let step = random.between(1, 3); step > 0; step--) await stepRandomly(devnet, random);
        await pause(random.between(0, 200));
        child.kill("SIGKILL");
        await exited;
      }
      // One at least, whatever the seed drew.
      await devnet.mint({ to: recipients[0] ?? "0x", amount: 7n });
      await devnet.mine(finalDepth);
      const { indexer } = await start(devnet, receiver.url, database);
      await expectExact(indexer, devnet, usdtOf(devnet));
      // The claims of killed processes would end after a minute.
      const { kysely } = await indexer.database();
      await sql`update indexer_outbox_deliveries set next_at = 0 where state = 'pending'`.execute(
        kysely,
      );
      const isFinal = (each: string) => each.endsWith("final");
      const truth = () => indexed(indexer, recipients, from);
      await expect
        .poll(async () => [...(await truth()).values()].every(isFinal), patience)
        .toBe(true);
      expect((await truth()).size).toBeGreaterThan(0);
      await expect.poll(() => believe(receiver.firstOnes()), patience).toEqual(await truth());
      // A repetition has the body of the first one.
      const bodies = new Map<string, ReceivedTransfer>();
      for (const event of receiver.received) {
        expect(event).toEqual(bodies.get(event.id) ?? event);
        bodies.set(event.id, event);
      }
    },
    180_000 * effort,
  );
});
