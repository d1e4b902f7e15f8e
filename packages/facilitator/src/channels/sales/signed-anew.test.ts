import type { Hex } from "@coinslot/protocol";
import { setSignEntropy } from "viem/accounts";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  type ChannelBuyers,
  patience,
  price,
  startChannelBuyers,
} from "../../testing/channel-buyers.ts";

/** A price whose ceiling is that of a voucher which a claim has shown. */
const cheaper = price - 500n;

describe("a buyer whose wallet signs one ceiling by another signature each time", () => {
  let buyers: ChannelBuyers;

  beforeEach(async () => {
    setSignEntropy(true);
    buyers = await startChannelBuyers("sqlite");
  });

  afterEach(() => buyers.here.stop());

  it("buys at the ceiling of a voucher that a claim has shown; its reader does not", async () => {
    const { here, channels, start } = buyers;
    const facilitator = await start({ claimCost: 100n, mostAtRisk: 400n });
    const config = channels.configOf();
    await channels.deposit(config, 20_000n);
    const shown = await channels.signVoucher(config, price);
    const ask = (signature: Hex, fingerprint: string, most: bigint) =>
      vi.waitFor(async () => {
        const answer = await facilitator.channels?.admit({
          network: here.devnet.network,
          route: "GET /weather",
          presented: {
            channelConfig: config,
            voucher: { channelId: channels.idOf(config), maxClaimableAmount: price, signature },
          },
          price: most,
          fingerprint,
          isSafe: true,
          isGone: () => false,
        });
        if (answer !== undefined && answer.state !== "busy") return answer;
        await here.devnet.mine(1);
        throw new Error("The chain is not followed yet.");
      }, patience);
    const admission = await ask(shown, "GET /dear", price);
    if (admission.state !== "admitted") throw new Error(admission.state);
    const charge = await admission.run.charge({ amount: 500n });
    if (charge.state !== "charged") throw new Error("Not charged.");
    charge.deliver();
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: 500n });
    }, patience);
    expect(await ask(shown, "GET /cheap", cheaper)).toMatchObject({ state: "corrected" });
    const anew = await channels.signVoucher(config, price);
    expect(anew).not.toBe(shown);
    expect(await ask(anew, "GET /cheap", cheaper)).toMatchObject({ state: "admitted" });
  });
});
