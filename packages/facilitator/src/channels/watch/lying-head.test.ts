import type { Hex } from "@coinslot/protocol";
import { keccak256, toHex } from "viem";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import {
  type ChannelBuyers,
  patience,
  price,
  startChannelBuyers,
} from "../../testing/channel-buyers.ts";
import { type NodeCall, type NodeProxy, startNodeProxy } from "../../testing/node-proxy.ts";
import { enginesByDay } from "../../testing/settling-devnet.ts";

const blockSchema = z.looseObject({ number: z.string(), timestamp: z.string() });
const atBlockSchema = z.tuple([z.unknown(), z.object({ blockHash: z.string() })]);
const lead = 1_000_000n;
const years = 300_000_000n;

describe.each(enginesByDay("sqlite"))(
  "a node that has once called its head far too high, on %s",
  (engine) => {
    let buyers: ChannelBuyers;
    let node: NodeProxy;
    let isLying: boolean;

    beforeEach(async () => {
      isLying = false;
      buyers = await startChannelBuyers(engine);
      const { rpcUrl } = buyers.here.devnet;
      node = await startNodeProxy(rpcUrl, async (call, ask) => (isLying ? lie(call) : ask()));
    });

    afterEach(async () => {
      await buyers.here.stop();
      await node.close();
    });

    /** The node's own answer about blocks that it has made up. */
    async function lie({ method, params }: NodeCall) {
      const { client } = buyers.here.devnet;
      const request = (parts: readonly unknown[]) =>
        client.request({ method, params: parts } as never) as Promise<unknown>;
      if (method === "eth_getLogs") return { result: [] };
      if (method === "eth_blockNumber") {
        return { result: toHex(BigInt(z.string().parse(await request([]))) + lead) };
      }
      if (method === "eth_getBlockByNumber") {
        const [place] = params;
        const asked =
          typeof place === "string" && place.startsWith("0x") ? BigInt(place) : undefined;
        const latest = blockSchema.parse(await request(["latest", false]));
        const real = BigInt(latest.number);
        if (asked !== undefined && asked <= real) return { result: await request(params) };
        const number = toHex(asked ?? real + lead);
        const hash: Hex = keccak256(number);
        const timestamp = toHex(BigInt(latest.timestamp) + years);
        return { result: { ...latest, number, hash, parentHash: keccak256(hash), timestamp } };
      }
      const at = atBlockSchema.safeParse(params).data;
      if (method === "eth_call" && at) return { result: await request([params[0], "latest"]) };
      return { result: await request(params) };
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
      isLying = true;
      await vi.waitFor(async () => {
        await here.devnet.mine(1);
        const watched = await metric(facilitator, "coinslot_channels_watched_block");
        expect(watched).toBeGreaterThan(Number(lead));
      }, patience);
      isLying = false;
      await channels.withdraw(config, 20_000n);
      await vi.waitFor(async () => {
        await here.devnet.mine(1);
        expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: price });
      }, patience);
      const other = channels.configOf();
      await channels.deposit(other, 20_000n);
      await buy(facilitator, other, price);
    });
  },
);
