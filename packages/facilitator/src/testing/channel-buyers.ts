import { createChannelFixture, placeChannels } from "@coinslot/devnet";
import type { ChannelConfig } from "@coinslot/protocol";
import { expect, vi } from "vitest";
import type { ChannelOptions } from "../configuration/channel-options.ts";
import type { CoinslotFacilitator } from "../create-facilitator.ts";
import { type Engine, type SettlingDevnet, startSettlingDevnet } from "./settling-devnet.ts";

export const patience = { timeout: 90_000, interval: 100 };
/** Of a request, in the token's smallest unit. */
export const price = 2_000n;

export type ChannelBuyers = Awaited<ReturnType<typeof startChannelBuyers>>;

/** A devnet with the escrow, facilitators that sell by channels, and their buyers. */
export async function startChannelBuyers(engine: Engine) {
  const here = await startSettlingDevnet(engine);
  await placeChannels(here.devnet);
  // The final block has them, too: a node has no state of them below.
  await here.devnet.mine(3);
  const channels = createChannelFixture(here.devnet);

  function start(
    options: ChannelOptions = {},
    others: Parameters<SettlingDevnet["start"]>[0] = {},
  ) {
    const { privateKey } = here.devnet.accounts.deployer;
    return here.start({
      channels: { authorizer: { privateKey }, ...options },
      ...others,
      network: { finalAfter: 2, ...others.network },
    });
  }

  /** Presents a voucher once. */
  async function present(
    facilitator: CoinslotFacilitator,
    channel: ChannelConfig,
    ceiling: bigint,
    limitKey?: string,
  ) {
    const signature = await channels.signVoucher(channel, ceiling);
    const voucher = { channelId: channels.idOf(channel), maxClaimableAmount: ceiling, signature };
    const { channels: sales } = facilitator;
    if (sales === undefined) throw new Error("No channels are served.");
    return sales.admit({
      network: here.devnet.network,
      route: "GET /weather",
      presented: { channelConfig: channel, voucher },
      price,
      fingerprint: `GET /weather ${ceiling}`,
      isSafe: true,
      isGone: () => false,
      ...(limitKey === undefined ? {} : { limitKey }),
    });
  }

  /** Presents a voucher until the chain is followed. */
  function admit(facilitator: CoinslotFacilitator, channel: ChannelConfig, ceiling: bigint) {
    return vi.waitFor(async () => {
      const admission = await present(facilitator, channel, ceiling);
      if (admission.state !== "busy") return admission;
      await here.devnet.mine(1);
      throw new Error("The chain is not followed yet.");
    }, patience);
  }

  /** Buys one request, up to a ceiling. */
  async function buy(facilitator: CoinslotFacilitator, channel: ChannelConfig, ceiling: bigint) {
    const admission = await admit(facilitator, channel, ceiling);
    if (admission.state !== "admitted") throw new Error(admission.state);
    const charge = await admission.run.charge({ amount: price });
    if (charge.state !== "charged") throw new Error("Not charged.");
    charge.deliver();
  }

  /** A metric of the facilitator, over all labels but these. */
  async function metric(
    facilitator: CoinslotFacilitator,
    name: string,
    labels: Record<string, string> = {},
  ): Promise<number> {
    const found = await facilitator.metrics.getSingleMetric(name)?.get();
    const wanted = Object.entries(labels);
    const values = (found?.values ?? []).filter((value) =>
      wanted.every(([label, text]) => value.labels[label] === text),
    );
    return values.reduce((sum, { value }) => sum + value, 0);
  }

  /** Mines until the watcher has planned on a state with this much unclaimed. */
  function planned(facilitator: CoinslotFacilitator, unclaimed: bigint) {
    return vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await metric(facilitator, "coinslot_channels_unclaimed")).toBe(Number(unclaimed));
    }, patience);
  }

  return { here, channels, start, present, admit, buy, metric, planned };
}
