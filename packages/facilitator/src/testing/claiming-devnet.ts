import { createChannelFixture, placeChannels } from "@coinslot/devnet";
import type { ChannelConfig } from "@coinslot/protocol";
import { expect, vi } from "vitest";
import type { ChannelOptions } from "../configuration/channel-options.ts";
import type { CoinslotFacilitator } from "../create-facilitator.ts";
import { createChannelActs } from "./channel-acts.ts";
import { type Engine, type SettlingDevnet, startSettlingDevnet } from "./settling-devnet.ts";

/** Waits for what comes with blocks. */
export const patience = { timeout: 90_000, interval: 100 };
/** Price of each request, in the token's smallest unit. */
export const price = 2_000n;

export type ClaimingDevnet = Awaited<ReturnType<typeof startClaimingDevnet>>;

/** A devnet with the contracts of channels, and facilitators that sell by them and claim. */
export async function startClaimingDevnet(engine: Engine) {
  const here = await startSettlingDevnet(engine);
  const { devnet } = here;
  await placeChannels(devnet);
  // The final block has them, too: a node has no state of them below.
  await devnet.mine(3);
  const channels = createChannelFixture(devnet);

  /** Starts a facilitator whose authorizer is the fixture's. */
  function start(
    options: ChannelOptions = {},
    others: Parameters<SettlingDevnet["start"]>[0] = {},
  ): Promise<CoinslotFacilitator> {
    const { privateKey } = devnet.accounts.deployer;
    return here.start({
      channels: { authorizer: { privateKey }, ...options },
      ...others,
      network: { finalAfter: 2, ...others.network },
    });
  }

  /** Asks once for a request of one price. */
  async function ask(facilitator: CoinslotFacilitator, ceiling: bigint, channel: ChannelConfig) {
    const signature = await channels.signVoucher(channel, ceiling);
    const voucher = { channelId: channels.idOf(channel), maxClaimableAmount: ceiling, signature };
    const { network } = devnet;
    const sales = facilitator.channels;
    if (sales === undefined) throw new Error("No channels are served.");
    const presented = { channelConfig: channel, voucher };
    expect(sales.check(presented, { network, terms: [channel] })).toBeUndefined();
    return sales.admit({
      network,
      route: "GET /weather",
      presented,
      price,
      fingerprint: `GET /weather ${ceiling}`,
      isSafe: true,
      isGone: () => false,
    });
  }

  /** Admits a request of one price, as soon as the chain is followed. */
  function admit(facilitator: CoinslotFacilitator, ceiling: bigint, channel: ChannelConfig) {
    return vi.waitFor(async () => {
      const admission = await ask(facilitator, ceiling, channel);
      if (admission.state === "busy") {
        await devnet.mine(1);
        throw new Error("The chain is not followed yet.");
      }
      return admission;
    }, patience);
  }

  /** Buys once, and has the answer. Returns false where nothing was sold. */
  async function buyOnce(
    facilitator: CoinslotFacilitator,
    ceiling: bigint,
    channel: ChannelConfig,
  ) {
    const admission = await admit(facilitator, ceiling, channel);
    if (admission.state !== "admitted") return false;
    const charge = await admission.run.charge({ amount: price });
    if (charge.state !== "charged") return false;
    charge.deliver();
    return true;
  }

  /** Buys up to a ceiling, price by price. Returns the sum of what was charged. */
  async function buy(facilitator: CoinslotFacilitator, upTo: bigint, channel: ChannelConfig) {
    const { totalClaimed } = await channels.stateOf(channel);
    for (let ceiling = totalClaimed + price; ceiling <= upTo; ceiling += price) {
      if (!(await buyOnce(facilitator, ceiling, channel))) throw new Error("Not charged.");
    }
    return upTo;
  }

  /** Mines until the escrow has paid this much of a channel. */
  function claimed(amount: bigint, channel: ChannelConfig) {
    return vi.waitFor(async () => {
      await devnet.mine(1);
      expect(await channels.stateOf(channel)).toMatchObject({ totalClaimed: amount });
    }, patience);
  }

  async function metric(facilitator: CoinslotFacilitator, name: string) {
    const found = await facilitator.metrics.getSingleMetric(name)?.get();
    return found?.values.reduce((sum, { value }) => sum + value, 0);
  }

  /** Mines until nothing is unclaimed. */
  function drained(facilitator: CoinslotFacilitator) {
    return vi.waitFor(async () => {
      await devnet.mine(1);
      expect(await metric(facilitator, "coinslot_channels_unclaimed")).toBe(0);
    }, patience);
  }

  return {
    ...here,
    ...createChannelActs(devnet, channels),
    channels,
    start,
    ask,
    admit,
    buyOnce,
    buy,
    claimed,
    metric,
    drained,
    lost: (facilitator: CoinslotFacilitator) => metric(facilitator, "coinslot_channels_lost_total"),
  };
}
