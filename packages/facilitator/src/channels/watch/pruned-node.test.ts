import type { ChannelConfig } from "@coinslot/protocol";
import { type Hex, isHex } from "viem";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import * as z from "zod";
import { deposit, signDepositRequest } from "../../testing/channel-deposits.ts";
import { patience, price } from "../../testing/claiming-devnet.ts";
import { type NodeAnswer, type NodeProxy, startNodeProxy } from "../../testing/node-proxy.ts";
import {
  type RefundingChannels,
  startRefundingChannels,
} from "../../testing/refunding-channels.ts";

let here: RefundingChannels;
let pruned: NodeProxy;
let config: ChannelConfig;
let answer: NodeAnswer;

/** A node that returns the states of its newest two blocks alone. */
beforeEach(async () => {
  answer = { error: { code: -32_000, message: "missing trie node" } };
  here = await startRefundingChannels("sqlite");
  const { client, rpcUrl } = here.devnet;
  pruned = await startNodeProxy(rpcUrl, async ({ method, params }, ask) => {
    const at = z.object({ blockHash: z.custom<Hex>(isHex) }).safeParse(params[1]).data;
    if (method !== "eth_call" || at === undefined) return ask();
    const [{ number }, head] = await Promise.all([client.getBlock(at), client.getBlockNumber()]);
    if (number + 1n >= head) return ask();
    return answer;
  });
  config = here.channels.configOf();
});

afterEach(async () => {
  await here.stop();
  await pruned.close();
});

it("claims, refunds and settles end behind a node that keeps fewer states than are final", async () => {
  const { devnet, channels } = here;
  await channels.deposit(config, 10_000n);
  const before = await here.balanceOf(config.receiver);
  const network = { rpcUrls: [pruned.url], finalAfter: 4 };
  const facilitator = await here.start({ claimCost: 100n }, { network });
  await here.buy(facilitator, 6_000n, config);
  expect(await here.refund(facilitator, config, 6_000n)).toMatchObject({ state: "refunded" });
  await channels.deposit(config, 4_000n, { salt: `0x${"1".repeat(64)}` });
  await here.mirrored(10_000n);
  expect(await here.unlocked(facilitator, config, 8_000n)).toMatchObject({ state: "admitted" });
  const { db } = await here.openReads();
  await vi.waitFor(async () => {
    await devnet.mine(1);
    const sent = await db.selectFrom("channel_claims").select("state").execute();
    expect(sent).toEqual([{ state: "done" }]);
    const states = await db.selectFrom("channel_states").select("is_moving").execute();
    expect(states).toEqual([{ is_moving: 0 }]);
  }, patience);
  await facilitator.close();
  await here.start({ claimCost: 100n }, { network });
  await vi.waitFor(async () => {
    await devnet.mine(1);
    expect(await here.balanceOf(config.receiver)).toBe(before + 6_000n);
  }, patience);
});

it.each(["0x", "0x1234"])(
  "claimed money is settled where the node returns %s for an old state",
  async (data) => {
    await here.channels.deposit(config, 10_000n);
    const before = await here.balanceOf(config.receiver);
    const first = await here.start({ claimCost: 100n });
    await here.buy(first, 6_000n, config);
    await here.channels.withdraw(config, 10_000n);
    await here.claimed(6_000n, config);
    await first.close();
    await here.devnet.mine(4);
    answer = { result: data };
    await here.start({ claimCost: 100n }, { network: { rpcUrls: [pruned.url] } });
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await here.balanceOf(config.receiver)).toBe(before + 6_000n);
    }, patience);
  },
);

it("a payload's deposit that must be deeper than the states ends there", async () => {
  const network = { rpcUrls: [pruned.url], finalAfter: 4, serveAfter: () => 3 };
  const facilitator = await here.start({}, { network });
  const request = await signDepositRequest(here, config, { amount: 30_000n });
  expect(await deposit(here, facilitator, request)).toMatchObject({ state: "deposited" });
  const { db } = await here.openReads();
  await vi.waitFor(async () => {
    await here.devnet.mine(1);
    const rows = await db.selectFrom("channel_deposits").select(["state", "ended_at"]).execute();
    expect(rows).toEqual([{ state: "done", ended_at: expect.any(Number) }]);
  }, patience);
});

it("deposits end there, and one that must be deep is sold on in the end", async () => {
  const serveAfter = (amount: bigint) => (amount < 30_000n ? 0 : 3);
  const network = { rpcUrls: [pruned.url], finalAfter: 4, serveAfter };
  const facilitator = await here.start({}, { network });
  const request = await signDepositRequest(here, config);
  expect(await deposit(here, facilitator, request)).toMatchObject({ state: "deposited" });
  const { db } = await here.openReads();
  await vi.waitFor(async () => {
    await here.devnet.mine(1);
    const rows = await db.selectFrom("channel_deposits").select("ended_at").execute();
    expect(rows).toEqual([{ ended_at: expect.any(Number) }]);
  }, patience);
  const large = here.channels.configOf();
  await here.channels.deposit(large, 30_000n);
  await here.devnet.mine(1);
  expect(await here.buyOnce(facilitator, price, config)).toBe(true);
  await vi.waitFor(async () => {
    await here.devnet.mine(1);
    expect(await here.buyOnce(facilitator, price, large)).toBe(true);
  }, patience);
});
