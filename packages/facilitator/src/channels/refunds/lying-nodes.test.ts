import { byDay } from "@coinslot/devnet/effort";
import { type ChannelConfig, channelContracts, channelSettlementAbi } from "@coinslot/protocol";
import { encodeAbiParameters, isHex, keccak256, numberToHex, pad, toEventSelector } from "viem";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import type { CoinslotFacilitator } from "../../create-facilitator.ts";
import { patience } from "../../testing/claiming-devnet.ts";
import { lieAboutChannels, type ShownChannel } from "../../testing/lying-escrow.ts";
import { type NodeAnswer, type NodeCall, startNodeProxy } from "../../testing/node-proxy.ts";
import {
  type RefundingChannels,
  startRefundingChannels,
} from "../../testing/refunding-channels.ts";
import { enginesByDay } from "../../testing/settling-devnet.ts";
import { type Fault, fail, faults, hastyClock } from "../../testing/silent-node.ts";

const refundedTopic = channelSettlementAbi.flatMap((item) =>
  item.type === "event" && item.name === "Refunded" ? [toEventSelector(item)] : [],
)[0];

const logsSchema = z.object({ result: z.array(z.looseObject({})) });

describe.each(enginesByDay("sqlite"))(
  "a refund of a channel behind two nodes, the first of which lies, on %s",
  (engine) => {
    let here: RefundingChannels;
    let channels: RefundingChannels["channels"];
    let config: ChannelConfig;
    let lie: Partial<ShownChannel> | undefined;
    let lieOfOther: Partial<ShownChannel> | undefined;
    /** What the first node shows of each refund. */
    let shown: bigint | undefined;
    let logs: number;
    let lies: number;
    let isSilent: boolean;
    let fault: Fault | undefined;
    let kept: number;
    let facilitator: CoinslotFacilitator;
    let close: () => Promise<unknown>;

    beforeEach(async () => {
      lie = undefined;
      lieOfOther = undefined;
      shown = undefined;
      logs = 0;
      isSilent = false;
      fault = undefined;
      lies = 0;
      kept = 0;
      here = await startRefundingChannels(engine);
      channels = here.channels;
      config = channels.configOf();
      const { rpcUrl } = here.devnet;
      const nodes = await Promise.all([
        startNodeProxy(rpcUrl, (call, ask) => answer(call, ask)),
        startNodeProxy(rpcUrl, (call, ask) =>
          fail(fault, call, () => lieAboutChannels(call, () => keepBack(call, ask), lieOfOther)),
        ),
      ]);
      close = () => Promise.all(nodes.map((node) => node.close()));
      await channels.deposit(config, 10_000n);
      facilitator = await here.start(
        {},
        { clock: hastyClock, network: { rpcUrls: nodes.map(({ url }) => url) } },
      );
      await here.buy(facilitator, 6_000n, config);
    });

    afterEach(async () => {
      await here.stop();
      await close();
    });

    /** Takes transactions, and passes none on. */
    async function keepBack({ method, params }: NodeCall, ask: () => Promise<NodeAnswer>) {
      const [raw] = params;
      if (!isSilent || method !== "eth_sendRawTransaction" || !isHex(raw)) return ask();
      kept += 1;
      return { result: keccak256(raw) };
    }

    async function answer(call: NodeCall, ask: () => Promise<NodeAnswer>): Promise<NodeAnswer> {
      const { method, params } = call;
      const isOfChannel = JSON.stringify(params).includes(channels.idOf(config));
      if (method === "eth_getLogs" && isOfChannel) logs += 1;
      const isOfRefunds =
        method === "eth_getLogs" && JSON.stringify(params).includes(`${refundedTopic}`);
      if (isOfRefunds && shown !== undefined) {
        const data = numberToHex(shown, { size: 32 });
        const { result } = logsSchema.parse(await ask());
        return { result: result.map((log) => ({ ...log, data })) };
      }
      if (lie === undefined) return keepBack(call, ask);
      if (isOfRefunds) {
        return { result: lie.refundNonce === undefined ? [] : [madeUp(params)] };
      }
      const answer = await lieAboutChannels(call, () => keepBack(call, ask), lie);
      if (method === "eth_call") lies += 1;
      return answer;
    }

    /** The event of a refund that never happened. */
    function madeUp([filter]: readonly unknown[]) {
      const { fromBlock } = filter as { fromBlock: string };
      return {
        address: channelContracts.settlement,
        topics: [refundedTopic, channels.idOf(config), pad("0x1")],
        data: encodeAbiParameters([{ type: "uint128" }], [4_000n]),
        transactionHash: keccak256("0x1234"),
        blockNumber: fromBlock,
      };
    }

    /** Mines until the node has lied more than `times`. */
    async function lied(times: number) {
      const until = lies + times;
      await vi.waitFor(async () => {
        await here.devnet.mine(1);
        expect(lies).toBeGreaterThan(until);
      }, patience);
    }

    /** Mines until so many more blocks were watched, one by one. */
    async function watched(blocks: number) {
      for (let mined = 0; mined < blocks; mined += 1) {
        await here.devnet.mine(1);
        const until = Number(await here.devnet.client.getBlockNumber());
        await vi.waitFor(async () => {
          const block = await here.metric(facilitator, "coinslot_channels_watched_block");
          expect(block).toBeGreaterThanOrEqual(until);
        }, patience);
      }
    }

    // By day, the next test has one that answers.
    it.each<[string, Fault | undefined]>(byDay(faults, [["answers", undefined], ...faults]))(
      "leaves what was charged where the node shows more money, and the other %s",
      async (_, other) => {
        lie = { balance: 16_000n };
        fault = other;
        await here.devnet.setAutomine(false);
        const asked = here.refund(facilitator, config, 6_000n);
        const signed = here.refundInPool();
        await Promise.race([signed, vi.waitFor(() => expect(lies).toBeGreaterThan(12), patience)]);
        lie = undefined;
        fault = undefined;
        await signed;
        await here.stealRefund();
        await here.devnet.mine(1);
        await here.devnet.setAutomine(true);
        expect(await asked).toMatchObject({ state: "refunded", amount: 4_000n });
        expect(await channels.stateOf(config)).toMatchObject({ balance: 6_000n });
      },
    );

    it("reads no logs of each block while the other node shows its nonce as unused", async () => {
      lieOfOther = { refundNonce: 0n };
      const outcome = await here.refund(facilitator, config, 6_000n);
      expect(outcome).toMatchObject({ state: "refunded", amount: 4_000n });
      await watched(4);
      const before = logs;
      await watched(20);
      expect(logs - before).toBeLessThan(3);
      expect(await here.ask(facilitator, 8_000n, config)).toMatchObject({ state: "busy" });
      lieOfOther = undefined;
      await channels.deposit(config, 4_000n, { salt: `0x${"1".repeat(64)}` });
      await here.mirrored(10_000n);
      expect(await here.unlocked(facilitator, config, 8_000n)).toMatchObject({ state: "admitted" });
    });

    it("returns its event that the node hid at first, while the other shows its nonce as unused", async () => {
      lie = {};
      lieOfOther = { refundNonce: 0n };
      const asked = here.refund(facilitator, config, 6_000n);
      await vi.waitFor(async () => {
        expect(await channels.stateOf(config)).toMatchObject({ balance: 6_000n });
      }, patience);
      await watched(6);
      lie = undefined;
      expect(await asked).toMatchObject({ state: "refunded", amount: 4_000n });
    });

    it("is signed for the chain's nonce, where the node shows one to come", async () => {
      lie = { refundNonce: 5n };
      const asked = here.refund(facilitator, config, 6_000n);
      await lied(30);
      lie = undefined;
      expect(await asked).toMatchObject({ state: "refunded", amount: 4_000n });
    });

    /** Buys by a channel of which a part may be asked for. */
    async function buyByLarge() {
      config = channels.configOf();
      await channels.deposit(config, 100_000n);
      await here.buy(facilitator, 6_000n, config);
    }

    it("gives back a part once, where the node shows less of it", async () => {
      await buyByLarge();
      shown = 1n;
      const asked = await here.refund(facilitator, config, 6_000n, 20_000n);
      expect(asked).toMatchObject({ state: "refunded" });
      await watched(12);
      await here.unlocked(facilitator, config, 8_000n);
      expect(await channels.stateOf(config)).toMatchObject({ balance: 80_000n, refundNonce: 1n });
    });

    it.each<[string, Partial<ShownChannel>]>([
      ["less money", { balance: 6_001n }],
      ["a larger claimed sum", { totalClaimed: 9_999n }],
    ])("gives back all, where the node shows %s for a while", async (_, shownByNode) => {
      lie = shownByNode;
      const asked = here.refund(facilitator, config, 6_000n);
      await lied(30);
      expect(await channels.stateOf(config)).toMatchObject({ balance: 10_000n });
      lie = undefined;
      expect(await asked).toMatchObject({ state: "refunded", amount: 4_000n });
    });

    it.each<[string, Partial<ShownChannel>]>([
      ["no money", { balance: 6_000n }],
      ["no money, and an event", { balance: 6_000n, refundNonce: 0n }],
    ])("does not end unsigned, where the node shows %s", async (_, shownByNode) => {
      const { db } = await here.openReads();
      lieOfOther = { refundNonce: 5n };
      const asked = here.refund(facilitator, config, 6_000n);
      await vi.waitFor(async () => {
        const refunds = await db.selectFrom("channel_refunds").select("state").execute();
        expect(refunds).toEqual([{ state: "locked" }]);
      }, patience);
      await here.devnet.mine(2);
      lie = shownByNode;
      lieOfOther = undefined;
      await lied(30);
      lie = undefined;
      expect(await asked).toMatchObject({ state: "refunded", amount: 4_000n });
      expect(await channels.stateOf(config)).toMatchObject({ balance: 6_000n, refundNonce: 1n });
    });

    it.each<[string, Fault | undefined]>(
      byDay([["answers", undefined]], [["answers", undefined], ...faults]),
    )(
      "keeps its channel locked until its nonce has passed, where the other %s",
      async (_, other) => {
        isSilent = true;
        const asked = here.refundOnce(facilitator, config, 6_000n);
        await vi.waitFor(() => expect(kept).toBeGreaterThan(0), patience);
        lie = { refundNonce: 1n, balance: 6_000n };
        fault = other;
        await lied(60);
        await asked;
        expect(await here.ask(facilitator, 8_000n, config)).toMatchObject({ state: "busy" });
        lie = undefined;
        fault = undefined;
        isSilent = false;
        expect(await here.refund(facilitator, config, 6_000n)).toMatchObject({
          state: "refunded",
          amount: 4_000n,
        });
      },
    );
  },
);
