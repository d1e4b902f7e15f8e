import { systemClock } from "@coinslot/chain";
import { type ChannelConfig, channelSettlementAbi } from "@coinslot/protocol";
import { type Hex, isHex, toEventSelector } from "viem";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import * as z from "zod";
import type { CoinslotFacilitator } from "../../create-facilitator.ts";
import {
  type ClaimingDevnet,
  patience,
  price,
  startClaimingDevnet,
} from "../../testing/claiming-devnet.ts";
import { lieAboutChannels, type ShownChannel } from "../../testing/lying-escrow.ts";
import { type NodeCall, type NodeProxy, startNodeProxy } from "../../testing/node-proxy.ts";
import { enginesByDay } from "../../testing/settling-devnet.ts";
import { type Fault, fail } from "../../testing/silent-node.ts";

/** As in the claiming devnet. */
const finalAfter = 2;
const settledTopic = channelSettlementAbi.flatMap((item) =>
  item.type === "event" && item.name === "Settled" ? [toEventSelector(item)] : [],
)[0];

describe.each(enginesByDay("sqlite"))(
  "a claim behind two nodes, the first of which lies, on %s",
  (engine) => {
    let here: ClaimingDevnet;
    let channels: ClaimingDevnet["channels"];
    let config: ChannelConfig;
    let lie: Partial<ShownChannel> | undefined;
    let spoil: ((call: NodeCall) => boolean) | undefined;
    let aheadMs: number;
    let node: NodeProxy;
    let facilitator: CoinslotFacilitator;

    beforeEach(async () => {
      lie = undefined;
      spoil = undefined;
      aheadMs = 0;
      here = await startClaimingDevnet(engine);
      channels = here.channels;
      config = channels.configOf();
      const { rpcUrl } = here.devnet;
      node = await startNodeProxy(rpcUrl, (call, ask) => {
        if (spoil?.(call)) return Promise.resolve({ result: [{}] });
        return lieAboutChannels(call, ask, lie);
      });
      // Before the start: its sender is the facilitator's relayer.
      await channels.deposit(config, 10_000n);
      facilitator = await start([node.url, rpcUrl]);
      await here.buyOnce(facilitator, price, config);
      // Before the clock jumps, the pace of blocks is known: else the jump would be the pace.
      await watched(4);
    });

    afterEach(async () => {
      await here.stop();
      await node.close();
    });

    function start(rpcUrls: string[]) {
      return here.start(
        {},
        {
          network: { rpcUrls },
          clock: { ...systemClock, now: () => performance.now() + aheadMs },
          now: () => Date.now() + aheadMs,
        },
      );
    }

    /** Lets the time of processes and chain pass. */
    async function pass(seconds: number) {
      aheadMs += seconds * 1_000;
      await here.devnet.client.increaseTime({ seconds });
    }

    /** Mines until so many more blocks were watched. */
    async function watched(blocks: number) {
      const until = (await here.devnet.client.getBlockNumber()) + BigInt(blocks);
      await vi.waitFor(async () => {
        await here.devnet.mine(1);
        const block = await here.metric(facilitator, "coinslot_channels_watched_block");
        expect(block).toBeGreaterThanOrEqual(Number(until));
      }, patience);
    }

    it("is made of money that the node has once shown as claimed", async () => {
      lie = { totalClaimed: price };
      // A round reads what an event names.
      await channels.deposit(config, 1_000n, { salt: `0x${"1".repeat(64)}` });
      await here.drained(facilitator);
      await watched(finalAfter + 2);
      lie = undefined;
      await channels.withdraw(config, 11_000n);
      await here.claimed(price, config);
    });

    it("is made of such money where the other node keeps no states of final blocks", async () => {
      await facilitator.close();
      const { client } = here.devnet;
      const pruned = await startNodeProxy(here.devnet.rpcUrl, async ({ method, params }, ask) => {
        const at = z.object({ blockHash: z.custom<Hex>(isHex) }).safeParse(params[1]).data;
        if (method !== "eth_call" || at === undefined) return ask();
        const [{ number }, head] = await Promise.all([
          client.getBlock(at),
          client.getBlockNumber(),
        ]);
        if (number + 1n >= head) return ask();
        return { error: { code: -32_000, message: "missing trie node" } };
      });
      onTestFinished(pruned.close);
      facilitator = await start([node.url, pruned.url]);
      lie = { totalClaimed: price };
      await channels.deposit(config, 1_000n, { salt: `0x${"1".repeat(64)}` });
      await here.drained(facilitator);
      await watched(finalAfter + 2);
      lie = undefined;
      await channels.withdraw(config, 11_000n);
      await here.claimed(price, config);
    });

    it("is made of such money where the other node answers by an error meanwhile", async () => {
      await facilitator.close();
      let fault: Fault | undefined = "refuses";
      const other = await startNodeProxy(here.devnet.rpcUrl, (call, ask) => fail(fault, call, ask));
      onTestFinished(other.close);
      facilitator = await start([node.url, other.url]);
      lie = { totalClaimed: price };
      await channels.deposit(config, 1_000n, { salt: `0x${"1".repeat(64)}` });
      await here.drained(facilitator);
      await watched(finalAfter + 2);
      [lie, fault] = [undefined, undefined];
      await channels.withdraw(config, 11_000n);
      await here.claimed(price, config);
    });

    it("is made where the node returns no logs that can be read", async () => {
      spoil = ({ method }) => method === "eth_getLogs";
      await channels.withdraw(config, 10_000n);
      await pass(46);
      await here.claimed(price, config);
    });

    it("is made after a start where no node has the payouts of former claims", async () => {
      const other = channels.configOf();
      await channels.deposit(other, 10_000n);
      await here.buyOnce(facilitator, price, other);
      await channels.withdraw(other, 10_000n);
      await here.claimed(price, other);
      await facilitator.close();
      await here.devnet.mine(5);
      spoil = ({ method, params }) =>
        method === "eth_getLogs" && JSON.stringify(params).includes(`${settledTopic}`);
      facilitator = await start([node.url]);
      await channels.withdraw(config, 10_000n);
      await here.claimed(price, config);
    });

    it("is made of money whose withdrawal the node hides", async () => {
      lie = { withdrawal: undefined };
      await channels.withdraw(config, 10_000n);
      await pass(46);
      await here.claimed(price, config);
    });
  },
);
