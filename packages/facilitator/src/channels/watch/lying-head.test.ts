import { setTimeout as pause } from "node:timers/promises";
import { systemClock } from "@coinslot/chain";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createChannelActs } from "../../testing/channel-acts.ts";
import {
  type ChannelBuyers,
  patience,
  price,
  startChannelBuyers,
} from "../../testing/channel-buyers.ts";
import { type MadeUpHead, makeUpBlocks } from "../../testing/made-up-blocks.ts";
import {
  type NodeAnswer,
  type NodeCall,
  type NodeProxy,
  startNodeProxy,
} from "../../testing/node-proxy.ts";
import { enginesByDay } from "../../testing/settling-devnet.ts";

const longLead = 1_000_000n;
const years = 300_000_000n;
const auditMs = 45_000;

describe.each(enginesByDay("sqlite"))(
  "a node that has once called its head far too high, on %s",
  (engine) => {
    let buyers: ChannelBuyers;
    let node: NodeProxy;
    let lie: MadeUpHead | undefined;
    /** Where the node takes two seconds for each block above the chain, the number of them. */
    let slowBlocks: number | undefined;

    beforeEach(async () => {
      lie = undefined;
      slowBlocks = undefined;
      buyers = await startChannelBuyers(engine);
      const { rpcUrl } = buyers.here.devnet;
      node = await startNodeProxy(rpcUrl, async (call, ask) => {
        const { devnet } = buyers.here;
        if (lie !== undefined) return makeUpBlocks(devnet, call, lie);
        const answer = await ask();
        if (slowBlocks === undefined || !isNone(call, answer)) return answer;
        slowBlocks += 1;
        await pause(2_000);
        return makeUpBlocks(devnet, call, { lead: longLead, seconds: 0n });
      });
    });

    afterEach(async () => {
      await buyers.here.stop();
      await node.close();
    });

    /** Whether the chain is not as high as a block that was asked for. */
    function isNone({ method }: NodeCall, answer: NodeAnswer): boolean {
      return method === "eth_getBlockByNumber" && "result" in answer && answer.result === null;
    }

    it("hides no withdrawal, and stops no channel", async () => {
      const { here, channels, start, buy, metric } = buyers;
      const facilitator = await start(
        {},
        { network: { rpcUrls: [node.url] }, times: { loseMs: 500 } },
      );
      const config = channels.configOf();
      await channels.deposit(config, 20_000n);
      await buy(facilitator, config, price);
      lie = { lead: longLead, seconds: years };
      await vi.waitFor(async () => {
        await here.devnet.mine(1);
        const watched = await metric(facilitator, "coinslot_channels_watched_block");
        expect(watched).toBeGreaterThan(Number(longLead));
      }, patience);
      lie = undefined;
      await channels.withdraw(config, 20_000n);
      await vi.waitFor(async () => {
        await here.devnet.mine(1);
        expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: price });
      }, patience);
      const other = channels.configOf();
      await channels.deposit(other, 20_000n);
      await buy(facilitator, other, price);
    });

    it("reads each block once that is to be in the place of a false one", async () => {
      const { here, channels, start, buy, metric } = buyers;
      let aheadMs = 0;
      const facilitator = await start(
        {},
        {
          network: { rpcUrls: [node.url] },
          clock: { ...systemClock, now: () => performance.now() + aheadMs },
        },
      );
      const watchedBlock = () => metric(facilitator, "coinslot_channels_watched_block");
      // One after the other, they would take longer than the test's patience.
      const configs = Array.from({ length: 60 }, () => channels.configOf());
      const acts = createChannelActs(here.devnet, channels);
      await acts.depositAll(configs, 20_000n);
      await Promise.all(configs.map((config) => buy(facilitator, config, price)));
      const real = Number(await here.devnet.client.getBlockNumber());
      // More than the chain gets meanwhile.
      const lead = 3_000;
      lie = { lead: BigInt(lead), seconds: 1n };
      aheadMs += auditMs;
      await vi.waitFor(async () => {
        await here.devnet.mine(1);
        expect(await watchedBlock()).toBeGreaterThan(real + lead);
      }, patience);
      lie = undefined;
      slowBlocks = 0;
      aheadMs += auditMs;
      await vi.waitFor(async () => {
        await here.devnet.mine(1);
        expect(await watchedBlock()).toBeLessThanOrEqual(real + lead);
      }, patience);
      expect(slowBlocks).toBeGreaterThan(0);
    });
  },
);
