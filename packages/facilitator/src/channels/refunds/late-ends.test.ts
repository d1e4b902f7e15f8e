import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "@coinslot/chain";
import { type ChannelConfig, channelSettlementAbi, type Hex } from "@coinslot/protocol";
import { decodeFunctionData, keccak256, parseTransaction, toEventSelector } from "viem";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import type { CoinslotFacilitator } from "../../create-facilitator.ts";
import { patience } from "../../testing/claiming-devnet.ts";
import { lieAboutChannels, type ShownChannel } from "../../testing/lying-escrow.ts";
import { type MadeUpHead, makeUpBlocks } from "../../testing/made-up-blocks.ts";
import { type NodeCall, type NodeProxy, startNodeProxy } from "../../testing/node-proxy.ts";
import {
  type RefundingChannels,
  startRefundingChannels,
} from "../../testing/refunding-channels.ts";

const refundedTopic = channelSettlementAbi.flatMap((item) =>
  item.type === "event" && item.name === "Refunded" ? [toEventSelector(item)] : [],
)[0];
const prunedAnswer = { error: { code: -32_000, message: "history is pruned" } };
const prunedAfter = 5;
const overdueMs = 1_260_000;
const rawSchema = z.tuple([z.templateLiteral(["0x", z.string()])]);
const receiptSchema = z.object({ result: z.looseObject({}).nullable() });
const rangeSchema = z.looseObject({ fromBlock: z.string(), toBlock: z.string() });

describe("a refund of a channel after 20 minutes, behind two nodes", () => {
  let here: RefundingChannels;
  let channels: RefundingChannels["channels"];
  let config: ChannelConfig;
  let aheadMs: number;
  let head: MadeUpHead | undefined;
  let isHiding: boolean;
  /** Its events are returned by the second node for single blocks only, each after a while. */
  let slowId: string | undefined;
  /** Whether transactions are kept from the chain, in `held`. */
  let isHolding: boolean;
  let held: Hex[];
  /** Whether the first node's receipts name block 1. */
  let isReceiptLow: boolean;
  /** The lowest block whose refunds were asked for. */
  let lowest: number;
  /** Whether the second node returns events of ten blocks at most, each time after 200 ms. */
  let isNarrow: boolean;
  /** Whether both nodes have pruned the logs of the refund's lock, and those before. */
  let isPruned: boolean;
  /** Whether the second node returns nothing. */
  let isDead: boolean;
  let deadCalls: number;
  /** Single blocks of such events that were asked for. */
  let slowBlocks: number;
  /** Of the first node, and of the second one. */
  let lies: [Partial<ShownChannel> | undefined, Partial<ShownChannel> | undefined];
  let nodes: NodeProxy[];
  let facilitator: CoinslotFacilitator;
  let db: Awaited<ReturnType<RefundingChannels["openReads"]>>["db"];
  let dialect: Awaited<ReturnType<RefundingChannels["openReads"]>>["dialect"];

  beforeEach(async () => {
    aheadMs = 0;
    head = undefined;
    isHiding = false;
    isHolding = false;
    held = [];
    isReceiptLow = false;
    lowest = Number.POSITIVE_INFINITY;
    slowId = undefined;
    slowBlocks = 0;
    isNarrow = false;
    isDead = false;
    isPruned = false;
    deadCalls = 0;
    lies = [undefined, undefined];
    here = await startRefundingChannels("sqlite");
    channels = here.channels;
    config = channels.configOf();
    const { devnet } = here;
    nodes = await Promise.all([
      startNodeProxy(devnet.rpcUrl, async (call, ask) => {
        const kept = keep(call);
        if (kept !== undefined) return kept;
        if (head !== undefined) return makeUpBlocks(devnet, call, head);
        if (isPruned && (await isOfPruned(call))) return prunedAnswer;
        if (call.method === "eth_getTransactionReceipt" && isReceiptLow) {
          const answer = receiptSchema.safeParse(await ask()).data;
          return { result: answer?.result ? { ...answer.result, blockNumber: "0x1" } : null };
        }
        const isOfRefunds = JSON.stringify(call.params).includes(`${refundedTopic}`);
        if (isOfRefunds && asks(call, channels.idOf(config))) {
          lowest = Math.min(lowest, Number(rangeSchema.parse(call.params[0]).fromBlock));
        }
        if (isHiding && isOfRefunds && asks(call, channels.idOf(config))) return { result: [] };
        return lieAboutChannels(call, ask, lies[0]);
      }),
      startNodeProxy(devnet.rpcUrl, async (call, ask) => {
        const kept = keep(call);
        if (kept !== undefined) return kept;
        if (isDead) {
          deadCalls += 1;
          return { error: { code: -32_000, message: "no service" } };
        }
        if (isPruned && (await isOfPruned(call))) return prunedAnswer;
        if (isNarrow && asks(call, channels.idOf(config))) return askNarrow(call, ask);
        if (slowId === undefined || !asks(call, slowId))
          return lieAboutChannels(call, ask, lies[1]);
        const { fromBlock, toBlock } = rangeSchema.parse(call.params[0]);
        if (fromBlock !== toBlock) return { error: { code: -32_000, message: "too many blocks" } };
        slowBlocks += 1;
        await sleep(9_000);
        return ask();
      }),
    ]);
    await channels.deposit(config, 10_000n);
    facilitator = await here.start(
      {},
      {
        network: { rpcUrls: nodes.map(({ url }) => url) },
        clock: { ...systemClock, now: () => performance.now() + aheadMs },
        now: () => Date.now() + aheadMs,
      },
    );
    await here.buy(facilitator, 6_000n, config);
    ({ db, dialect } = await here.openReads());
  });

  afterEach(async () => {
    await here.stop();
    await Promise.all(nodes.map((node) => node.close()));
  });

  function keep({ method, params }: NodeCall): { result: Hex } | undefined {
    if (!isHolding || method !== "eth_sendRawTransaction") return undefined;
    const [raw] = rawSchema.parse(params);
    held.push(raw);
    return { result: keccak256(raw) };
  }

  async function askNarrow<T>({ params }: NodeCall, ask: () => Promise<T>) {
    // Ten minutes pass in a few looks.
    aheadMs += 2_500;
    await sleep(200);
    const { fromBlock, toBlock } = rangeSchema.parse(params[0]);
    if (Number(toBlock) - Number(fromBlock) < 10) return ask();
    return { error: { code: -32_000, message: "too many blocks" } };
  }

  /** Whether a call asks for a channel's events. */
  function asks({ method, params }: NodeCall, id: string): boolean {
    return method === "eth_getLogs" && JSON.stringify(params).includes(id);
  }

  async function isOfPruned(call: NodeCall): Promise<boolean> {
    if (!asks(call, channels.idOf(config))) return false;
    const lock = (await readRefund())?.since_number ?? 0;
    return Number(rangeSchema.parse(call.params[0]).fromBlock) <= lock + prunedAfter;
  }

  function readRefund(of = config) {
    return db
      .selectFrom("channel_refunds")
      .select(["state", "hash", "since_number", "refunded"])
      .where("channel_id", "=", channels.idOf(of))
      .executeTakeFirst();
  }

  /** Asks for a refund, and waits until it is locked. */
  async function lock() {
    void here.refundOnce(facilitator, config, 6_000n).catch(() => undefined);
    await lockedOne();
  }

  async function lockedOne() {
    await vi.waitFor(async () => expect(await readRefund()).toBeDefined(), patience);
  }

  /** Mines until it is paid. */
  function paid() {
    return vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await channels.stateOf(config)).toMatchObject({ balance: 6_000n });
    }, patience);
  }

  /** Mines until it has ended, after its time. */
  async function ended() {
    aheadMs += overdueMs;
    await here.devnet.client.increaseTime({ seconds: overdueMs / 1_000 });
    return vi.waitFor(async () => {
      await here.devnet.mine(1);
      const refund = await readRefund();
      expect(["done", "failed"]).toContain(refund?.state);
      return refund;
    }, patience);
  }

  it("gives back a part, where the second one returns nothing from its lock on", async () => {
    await channels.deposit(config, 90_000n, { salt: `0x${"1".repeat(64)}` });
    await here.mirrored(100_000n);
    isDead = true;
    void here.refundOnce(facilitator, config, 6_000n, 20_000n).catch(() => undefined);
    await lockedOne();
    await vi.waitFor(async () => {
      const before = deadCalls;
      aheadMs += 60_000;
      await here.devnet.client.increaseTime({ seconds: 60 });
      await here.devnet.mine(1);
      await vi.waitFor(() => expect(deadCalls).toBeGreaterThan(before), patience);
      expect(["done", "failed"]).toContain((await readRefund())?.state);
    }, patience);
    expect(await readRefund()).toMatchObject({ state: "done" });
    expect(await channels.stateOf(config)).toMatchObject({ balance: 80_000n, refundNonce: 1n });
  });

  it("fails unsigned, where the first one returns an impossible state of it", async () => {
    // So it is not signed before.
    lies = [undefined, { refundNonce: 5n }];
    await lock();
    lies = [{ totalClaimed: 20_000n }, { refundNonce: 5n }];
    expect(await ended()).toMatchObject({ state: "failed" });
    const unlocked = await db.selectFrom("channels").select("refunding").execute();
    expect(unlocked).toEqual([{ refunding: 0 }]);
  });

  /** Locks it while the head of the first node is too high. */
  async function lockTooHigh() {
    head = { lead: 30n, seconds: 1n };
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      const watched = await here.metric(facilitator, "coinslot_channels_watched_block");
      expect(watched).toBeGreaterThan(Number(await here.devnet.client.getBlockNumber()));
    }, patience);
    await lock();
    head = undefined;
  }

  it("is done, where the head of the first one was too high at its lock", async () => {
    await lockTooHigh();
    await paid();
    const paidAt = Number(await here.devnet.client.getBlockNumber());
    expect((await readRefund())?.since_number).toBeGreaterThan(paidAt);
    expect(await ended()).toMatchObject({ state: "done", hash: expect.stringMatching(/^0x/) });
  });

  it("is done, where the first one hides its event", async () => {
    isHiding = true;
    await lock();
    await paid();
    expect(await ended()).toMatchObject({ state: "done", hash: expect.stringMatching(/^0x/) });
  });

  /** Lets no end come before its time is over. */
  async function paidWithoutEnd(refundNonce = 0n) {
    lies = [undefined, { refundNonce }];
    await paid();
    lies = [undefined, undefined];
  }

  it("is done, where both have pruned the logs of its lock, and some after it", async () => {
    lies = [undefined, { refundNonce: 5n }];
    await lock();
    await here.devnet.mine(prunedAfter);
    await paidWithoutEnd();
    isPruned = true;
    expect(await ended()).toMatchObject({ state: "done", hash: expect.stringMatching(/^0x/) });
  });

  it("is done with its own amount, where the receiver has given back some before its lock", async () => {
    await here.refundFirst(config, 1_000n);
    await here.mirrored(9_000n);
    await lock();
    await paidWithoutEnd(1n);
    const refunded = (await ended())?.refunded;
    expect(refunded && dialect.amount.decode(refunded)).toBe(3_000n);
  });

  it("is done, where the second one returns few blocks at once, and has many to return", async () => {
    isHiding = true;
    // So nothing ends it before.
    lies = [undefined, { refundNonce: 0n }];
    await lock();
    await paid();
    await here.devnet.mine(600);
    lies = [undefined, undefined];
    isNarrow = true;
    expect(await ended()).toMatchObject({ state: "done", hash: expect.stringMatching(/^0x/) });
  });

  it("is done, where such a head was followed by a stranger who has sent it a block before", async () => {
    isHolding = true;
    await lockTooHigh();
    const ours = await vi.waitFor(async () => {
      await here.devnet.mine(1);
      const [raw] = held;
      if (raw === undefined) throw new Error("Nothing was sent.");
      return raw;
    }, patience);
    const { data = "0x" } = parseTransaction(ours);
    const { functionName, args } = decodeFunctionData({ abi: channelSettlementAbi, data });
    const refund = functionName === "multicall" ? args[0].at(-1) : data;
    const stolen = await here.sendFirst(here.devnet.accounts.seller, refund ?? "0x");
    await paid();
    await here.devnet.client.sendRawTransaction({ serializedTransaction: ours });
    isHolding = false;
    expect(await ended()).toMatchObject({ state: "done", hash: stolen });
  });

  it("reads no blocks far below its lock, where the receipt of the first one names block 1", async () => {
    await lock();
    isReceiptLow = true;
    await paid();
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await readRefund()).toMatchObject({ state: "done" });
    }, patience);
    expect(lowest).toBeGreaterThan((await readRefund())?.since_number ?? Number.NaN);
  });

  it("holds up neither another one nor the close, where a node returns it block by block", async () => {
    const other = channels.configOf();
    await channels.deposit(other, 10_000n);
    await here.buy(facilitator, 6_000n, other);
    isHiding = true;
    lies = [undefined, { refundNonce: 0n }];
    await lock();
    await paid();
    await here.devnet.mine(100);
    lies = [undefined, undefined];
    slowId = channels.idOf(config);
    void here.refundOnce(facilitator, other, 6_000n).catch(() => undefined);
    // No block is mined: it is not final.
    await vi.waitFor(async () => {
      expect(await channels.stateOf(other)).toMatchObject({ balance: 6_000n });
    }, patience);
    aheadMs += overdueMs;
    await here.devnet.client.increaseTime({ seconds: overdueMs / 1_000 });
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(slowBlocks).toBeGreaterThan(0);
      expect(await readRefund(other)).toMatchObject({ state: "done" });
    }, patience);
    const before = slowBlocks;
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(slowBlocks).toBeGreaterThan(before);
    }, patience);
    await facilitator.close();
    expect(await readRefund()).toMatchObject({ state: "sent" });
  });
});
