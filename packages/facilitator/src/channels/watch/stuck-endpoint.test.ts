import { http } from "viem";
import { expect, it, onTestFinished } from "vitest";
import { type NodeAnswer, startNodeProxy } from "../../testing/node-proxy.ts";
import { startRefundingChannels } from "../../testing/refunding-channels.ts";

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
  expect(await here.unlocked(facilitator, config, 8_000n)).toMatchObject({ state: "admitted" });
});
