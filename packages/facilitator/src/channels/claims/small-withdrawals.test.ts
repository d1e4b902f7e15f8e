import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  type ChannelBuyers,
  patience,
  price,
  startChannelBuyers,
} from "../../testing/channel-buyers.ts";
import { enginesByDay } from "../../testing/settling-devnet.ts";

describe.each(enginesByDay("sqlite"))("a withdrawal, on %s", (engine) => {
  let buyers: ChannelBuyers;

  beforeEach(async () => {
    buyers = await startChannelBuyers(engine);
  });

  afterEach(() => buyers.here.stop());

  it("a withdrawal of one unit sends no claim for each purchase; one of all the money sends one", async () => {
    const { channels, start, buy, planned, metric } = buyers;
    const facilitator = await start();
    const config = channels.configOf();
    await channels.deposit(config, 100_000n);
    await buy(facilitator, config, price);
    await channels.withdraw(config, 1n);
    const sent = () => metric(facilitator, "coinslot_channel_claims_total", { outcome: "sent" });
    for (let count = 2n; count <= 6n; count += 1n) {
      await buy(facilitator, config, count * price);
      // Money that the payer may not take is not claimed in haste: each claim costs the seller gas.
      await planned(facilitator, count * price);
    }
    expect(await sent()).toBe(0);
    expect(await metric(facilitator, "coinslot_channels_at_risk")).toBe(0);
    await buyers.here.devnet.client.increaseTime({ seconds: 901 });
    await channels.finish(config);
    const { balance } = await channels.stateOf(config);
    await channels.withdraw(config, balance);
    await vi.waitFor(async () => {
      await buyers.here.devnet.mine(1);
      expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: 6n * price });
    }, patience);
    // The last purchase may be delivered after the first claim.
    expect(await sent()).toBeLessThan(3);
  });
});
