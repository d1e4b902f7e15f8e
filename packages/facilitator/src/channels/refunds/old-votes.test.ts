import { systemClock } from "@coinslot/chain";
import { channelSettlementAbi } from "@coinslot/protocol";
import { toFunctionSelector } from "viem";
import { expect, it, onTestFinished, vi } from "vitest";
import { patience } from "../../testing/claiming-devnet.ts";
import { lieAboutChannels, type ShownChannel } from "../../testing/lying-escrow.ts";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import { startRefundingChannels } from "../../testing/refunding-channels.ts";

const refundSelector = channelSettlementAbi.flatMap((item) =>
  item.type === "function" && item.name === "refund" ? [toFunctionSelector(item)] : [],
)[0];

it("no refund is signed by what an endpoint has shown more than a minute before", async () => {
  const here = await startRefundingChannels("sqlite");
  onTestFinished(() => here.stop());
  const { devnet, channels } = here;
  const isTrial = (params: readonly unknown[]) =>
    JSON.stringify(params).includes(`${refundSelector?.slice(2)}`);
  let aheadMs = 0;
  let isArmed = false;
  let looks = 0;
  /** Of the second endpoint: with it, no signature is good. */
  let lie: Partial<ShownChannel> | undefined = { refundNonce: 5n };
  const first = await startNodeProxy(devnet.rpcUrl, async ({ method, params }, ask) => {
    if (isArmed && method === "eth_call" && isTrial(params)) {
      // While the first of both is tried, the votes about the other one become old.
      isArmed = false;
      aheadMs += 61_000;
      lie = { refundNonce: 5n };
      looks = 0;
    }
    return ask();
  });
  const second = await startNodeProxy(devnet.rpcUrl, async (call, ask) => {
    if (call.method === "eth_call") looks += 1;
    return lieAboutChannels(call, ask, lie);
  });
  onTestFinished(first.close);
  onTestFinished(second.close);
  const configs = [channels.configOf(), channels.configOf()];
  const facilitator = await here.start(
    {},
    {
      clock: { ...systemClock, now: () => performance.now() + aheadMs },
      network: { rpcUrls: [first.url, second.url] },
    },
  );
  for (const config of configs) {
    await channels.deposit(config, 10_000n);
    await here.buy(facilitator, 6_000n, config);
  }
  const { db } = await here.openReads();
  async function states() {
    const rows = await db.selectFrom("channel_refunds").select("state").execute();
    return rows.map(({ state }) => state === "locked");
  }
  const asked = configs.map((config) => here.refund(facilitator, config, 6_000n));
  await vi.waitFor(async () => expect(await states()).toEqual([true, true]), patience);
  // A look at both has begun.
  looks = 0;
  await vi.waitFor(() => expect(looks).toBeGreaterThan(4), patience);
  isArmed = true;
  lie = undefined;
  await vi.waitFor(async () => {
    expect(isArmed).toBe(false);
    const locked = await states();
    expect(locked).toContain(false);
    if (locked.includes(true)) expect(looks).toBeGreaterThan(4);
  }, patience);
  expect(await states()).toContain(true);
  lie = undefined;
  expect(await Promise.all(asked)).toMatchObject([{ state: "refunded" }, { state: "refunded" }]);
});

it("refunds whose votes are old are voted on anew at once", async () => {
  const here = await startRefundingChannels("sqlite");
  onTestFinished(() => here.stop());
  const { devnet, channels } = here;
  const configs = [channels.configOf(), channels.configOf(), channels.configOf()];
  const idsIn = (params: readonly unknown[]) =>
    configs.filter((each) => JSON.stringify(params).includes(channels.idOf(each).slice(2)));
  let aheadMs = 0;
  let lie: Partial<ShownChannel> | undefined = { refundNonce: 5n };
  let most = 0;
  /** Channels in the second endpoint's calls since the votes became old. */
  let asked: number[] | undefined;
  const first = await startNodeProxy(devnet.rpcUrl, async ({ method, params }, ask) => {
    const isTrial = JSON.stringify(params).includes(`${refundSelector?.slice(2)}`);
    if (method === "eth_call" && isTrial && asked === undefined) {
      aheadMs += 61_000;
      asked = [];
    }
    return ask();
  });
  const second = await startNodeProxy(devnet.rpcUrl, async (call, ask) => {
    const ids = idsIn(call.params);
    most = Math.max(most, ids.length);
    if (call.method === "eth_call" && ids.length > 0) asked?.push(ids.length);
    return lieAboutChannels(call, ask, lie);
  });
  onTestFinished(first.close);
  onTestFinished(second.close);
  const facilitator = await here.start(
    {},
    {
      clock: { ...systemClock, now: () => performance.now() + aheadMs },
      network: { rpcUrls: [first.url, second.url] },
    },
  );
  for (const config of configs) {
    await channels.deposit(config, 10_000n);
    await here.buy(facilitator, 6_000n, config);
  }
  const outcomes = configs.map((config) => here.refund(facilitator, config, 6_000n));
  // A look at all of them has begun.
  await vi.waitFor(() => expect(most).toBe(3), patience);
  lie = undefined;
  for (const outcome of await Promise.all(outcomes)) {
    expect(outcome).toMatchObject({ state: "refunded" });
  }
  expect(asked?.[0]).toBe(2);
});
