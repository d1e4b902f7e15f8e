import { channelEventsOf } from "@coinslot/devnet";
import type { ChannelConfig } from "@coinslot/protocol";
import { parseEther, parseGwei } from "viem";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import {
  type ClaimingDevnet,
  patience,
  price,
  startClaimingDevnet,
} from "../../testing/claiming-devnet.ts";
import { startNodeProxy } from "../../testing/node-proxy.ts";

const delaySeconds = 900;

describe("a withdrawal from a channel with unclaimed money", () => {
  let here: ClaimingDevnet;
  let channels: ClaimingDevnet["channels"];
  let config: ChannelConfig;

  beforeEach(async () => {
    here = await startClaimingDevnet("sqlite");
    channels = here.channels;
    config = channels.configOf();
  });

  afterEach(() => here.stop());

  /** Ends the withdrawal, and returns what goes back to the payer. */
  async function finish(channel = config) {
    const receipt = await channels.finish(channel);
    const [event] = channelEventsOf(receipt);
    return event?.args && "amount" in event.args ? event.args.amount : undefined;
  }

  it("a withdrawal of a part leaves the rest on sale to the last second, and nothing sold unclaimed", async () => {
    const facilitator = await here.start();
    await channels.deposit(config, 20_000n);
    await here.buy(facilitator, 4_000n, config);
    const { blockNumber } = await channels.withdraw(config, 12_000n);
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      const watched = await here.metric(facilitator, "coinslot_channels_watched_block");
      expect(watched).toBeGreaterThanOrEqual(Number(blockNumber));
    }, patience);
    // 20,000 less 12,000 stays secure: two more prices, and no third.
    let charged = 4_000n;
    while (await here.buyOnce(facilitator, charged + price, config)) charged += price;
    expect(charged).toBe(8_000n);
    await here.devnet.client.increaseTime({ seconds: delaySeconds + 1 });
    expect(await here.buyOnce(facilitator, charged + price, config)).toBe(false);
    expect(await finish()).toBe(12_000n);
    expect(await here.buyOnce(facilitator, charged + price, config)).toBe(false);
    // All of the rest is charged: a withdrawal of it takes unclaimed money.
    await channels.withdraw(config, 8_000n);
    await here.claimed(8_000n, config);
    await here.drained(facilitator);
    expect(await here.lost(facilitator)).toBe(0);
  });

  it("is answered as soon as a chain is back that was gone for the whole delay", async () => {
    let isGone = false;
    let aheadMs = 0;
    const proxy = await startNodeProxy(here.devnet.rpcUrl, async (_call, ask) =>
      isGone ? undefined : ask(),
    );
    onTestFinished(proxy.close);
    const facilitator = await here.start(
      {},
      { network: { rpcUrls: [proxy.url] }, now: () => Date.now() + aheadMs },
    );
    const taken = channels.configOf();
    for (const each of [config, taken]) {
      await channels.deposit(each, 10_000n);
      await here.buy(facilitator, 6_000n, each);
    }
    isGone = true;
    for (const each of [config, taken]) await channels.withdraw(each, 10_000n);
    await here.devnet.client.increaseTime({ seconds: delaySeconds + 1 });
    aheadMs = (delaySeconds + 1) * 1_000;
    // No view, no credit.
    for (const each of [config, taken]) {
      expect(await here.ask(facilitator, 8_000n, each)).toMatchObject({ state: "busy" });
    }
    // One payer is there before the chain is: that much is lost, and no more.
    expect(await finish(taken)).toBe(10_000n);
    isGone = false;
    await here.claimed(6_000n, config);
    expect(await finish()).toBe(4_000n);
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await here.lost(facilitator)).toBe(6_000);
    }, patience);
    expect(await channels.stateOf(taken)).toMatchObject({ totalClaimed: 0n });
  });

  it("is answered once gas falls below the cap, also where it rose after the claim was sent", async () => {
    const { client } = here.devnet;
    const facilitator = await here.start(
      {},
      {
        network: { fees: { maxFeePerGas: parseGwei("20") } },
        times: { resendMs: 200, replaceMs: 500 },
      },
    );
    await channels.deposit(config, 10_000n);
    await here.buy(facilitator, 6_000n, config);
    await client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei("100") });
    await channels.withdraw(config, 10_000n);
    await vi.waitFor(async () => {
      await client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei("100") });
      await here.devnet.mine(1);
      const { relayer } = here.devnet.accounts;
      // Sent, and sent again where that one was given up meanwhile.
      const claims = await here.metric(facilitator, "coinslot_channel_claims_total");
      expect(claims).toBeGreaterThanOrEqual(1);
      const nonce = await client.getTransactionCount({ address: relayer.address });
      expect(nonce).toBe(1);
    }, patience);
    expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: 0n });
    await client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei("15") });
    await here.claimed(6_000n, config);
    expect(await here.lost(facilitator)).toBe(0);
  });

  it("is answered once a relayer without money has some", async () => {
    const { client, accounts } = here.devnet;
    const { address } = accounts.relayer;
    const facilitator = await here.start();
    await channels.deposit(config, 10_000n);
    await here.buy(facilitator, 6_000n, config);
    await client.setBalance({ address, value: 0n });
    await channels.withdraw(config, 10_000n);
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await here.metric(facilitator, "coinslot_channels_at_risk")).toBe(6_000);
    }, patience);
    await here.devnet.mine(3);
    expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: 0n });
    await client.setBalance({ address, value: parseEther("1") });
    await here.claimed(6_000n, config);
    expect(await here.lost(facilitator)).toBe(0);
  });
});
