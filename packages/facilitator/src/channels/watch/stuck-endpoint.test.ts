import { systemClock } from "@coinslot/chain";
import type { ChannelRefundOutcome } from "@coinslot/protocol";
import { http } from "viem";
import { expect, it, onTestFinished, vi } from "vitest";
import { patience } from "../../testing/claiming-devnet.ts";
import { type NodeAnswer, startNodeProxy } from "../../testing/node-proxy.ts";
import { startRefundingChannels } from "../../testing/refunding-channels.ts";
import { type Fault, fail } from "../../testing/silent-node.ts";

it("an endpoint that is stuck at an old block holds up no refund of a channel", async () => {
  const here = await startRefundingChannels("sqlite");
  onTestFinished(() => here.stop());
  const { devnet, channels } = here;
  const head = { method: "eth_getBlockByNumber", params: ["latest", false] };
  const number = { method: "eth_blockNumber" };
  const kept = new Map<string, Promise<NodeAnswer>>();
  const stuck = await startNodeProxy(devnet.rpcUrl, async ({ method, params: [first] }, ask) => {
    if (method !== number.method && first !== "latest") return ask();
    const answer = kept.get(method) ?? ask();
    kept.set(method, answer);
    return answer;
  });
  onTestFinished(stuck.close);
  const node = http(stuck.url)({});
  await Promise.all([node.request(head), node.request(number)]);
  await devnet.client.increaseTime({ seconds: 900 });
  const config = channels.configOf();
  await channels.deposit(config, 10_000n);
  const network = { rpcUrls: [devnet.rpcUrl, stuck.url] };
  const facilitator = await here.start({}, { network, now: () => Date.now() + 900_000 });
  await here.buy(facilitator, 6_000n, config);
  expect(await here.refund(facilitator, config, 6_000n)).toMatchObject({
    state: "refunded",
    amount: 4_000n,
  });
  await channels.deposit(config, 4_000n, { salt: `0x${"1".repeat(64)}` });
  await here.mirrored(10_000n);
  expect(await here.unlocked(facilitator, config, 8_000n)).toMatchObject({ state: "admitted" });
});

it("an endpoint that returns no channel holds up a refund of one for ten minutes", async () => {
  const here = await startRefundingChannels("sqlite");
  onTestFinished(() => here.stop());
  const { devnet, channels } = here;
  let aheadMs = 0;
  let fault: Fault | undefined;
  let faults = 0;
  const silent = await startNodeProxy(devnet.rpcUrl, (call, ask) => {
    if (fault !== undefined && call.method === "eth_call") faults += 1;
    return fail(fault, call, ask);
  });
  onTestFinished(silent.close);
  const config = channels.configOf();
  await channels.deposit(config, 10_000n);
  const facilitator = await here.start(
    {},
    {
      network: { rpcUrls: [devnet.rpcUrl, silent.url] },
      clock: { ...systemClock, now: () => performance.now() + aheadMs },
      now: () => Date.now() + aheadMs,
    },
  );
  await here.buy(facilitator, 6_000n, config);
  fault = "refuses";
  const begun = performance.now();
  let outcome: ChannelRefundOutcome | undefined;
  const asked = here.refund(facilitator, config, 6_000n).then((value) => {
    outcome = value;
  });
  let seen = 0;
  await vi.waitFor(async () => {
    await devnet.mine(1);
    // Time passes with looks that the endpoint has failed.
    if (faults > seen) {
      aheadMs += 30_000;
      await devnet.client.increaseTime({ seconds: 30 });
    }
    seen = faults;
    expect(outcome).toBeDefined();
  }, patience);
  await asked;
  expect(outcome).toMatchObject({ state: "refunded", amount: 4_000n });
  expect(performance.now() - begun + aheadMs).toBeGreaterThan(600_000);
});
