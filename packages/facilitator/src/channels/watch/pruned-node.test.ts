import { type Hex, isHex } from "viem";
import { expect, it, onTestFinished, vi } from "vitest";
import * as z from "zod";
import { patience } from "../../testing/claiming-devnet.ts";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import { startRefundingChannels } from "../../testing/refunding-channels.ts";

it("claims and refunds end behind a node that keeps fewer states than are final", async () => {
  const here = await startRefundingChannels("sqlite");
  onTestFinished(() => here.stop());
  const { devnet, channels } = here;
  const { client } = devnet;
  const pruned = await startNodeProxy(devnet.rpcUrl, async ({ method, params }, ask) => {
    const at = z.object({ blockHash: z.custom<Hex>(isHex) }).safeParse(params[1]).data;
    if (method !== "eth_call" || at === undefined) return ask();
    const [{ number }, head] = await Promise.all([client.getBlock(at), client.getBlockNumber()]);
    if (number + 1n >= head) return ask();
    return { error: { code: -32_000, message: "missing trie node" } };
  });
  onTestFinished(pruned.close);
  const config = channels.configOf();
  await channels.deposit(config, 10_000n);
  const network = { rpcUrls: [pruned.url], finalAfter: 4 };
  const facilitator = await here.start({}, { network });
  await here.buy(facilitator, 6_000n, config);
  expect(await here.refund(facilitator, config, 6_000n)).toMatchObject({ state: "refunded" });
  await channels.deposit(config, 4_000n, { salt: `0x${"1".repeat(64)}` });
  expect(await here.unlocked(facilitator, config, 8_000n)).toMatchObject({ state: "admitted" });
  const { db } = await here.openReads();
  await vi.waitFor(async () => {
    await devnet.mine(1);
    const sent = await db.selectFrom("channel_claims").select("state").execute();
    expect(sent).toEqual([{ state: "done" }]);
    const states = await db.selectFrom("channel_states").select("is_moving").execute();
    expect(states).toEqual([{ is_moving: 0 }]);
  }, patience);
});
