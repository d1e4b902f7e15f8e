import { channelContracts, channelSettlementAbi } from "@coinslot/protocol";
import { decodeFunctionData, isAddressEqual } from "viem";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  type ChannelBuyers,
  patience,
  price,
  startChannelBuyers,
} from "../../testing/channel-buyers.ts";
import { enginesByDay } from "../../testing/settling-devnet.ts";

describe.each(enginesByDay("sqlite"))("a voucher in the calldata of a claim, on %s", (engine) => {
  let buyers: ChannelBuyers;

  beforeEach(async () => {
    buyers = await startChannelBuyers(engine);
  });

  afterEach(() => buyers.here.stop());

  /** The rows of the newest claim, as any reader of the chain has them. */
  async function readClaim() {
    const { client } = buyers.here.devnet;
    const { number } = await client.getBlock();
    for (let height = number; height > 0n; height -= 1n) {
      const block = await client.getBlock({ blockNumber: height, includeTransactions: true });
      for (const { to, input } of block.transactions) {
        if (to === null || !isAddressEqual(to, channelContracts.settlement)) continue;
        const call = decodeFunctionData({ abi: channelSettlementAbi, data: input });
        if (call.functionName === "claimWithSignature") return call.args[0];
      }
    }
    throw new Error("No claim is on the chain.");
  }

  it("buys nothing for its reader, though it covers more than was charged", async () => {
    const { here, channels, start, admit } = buyers;
    const facilitator = await start({ claimCost: 100n, mostAtRisk: 400n });
    const config = channels.configOf();
    await channels.deposit(config, 20_000n);
    const admission = await admit(facilitator, config, price);
    if (admission.state !== "admitted") throw new Error(admission.state);
    const charge = await admission.run.charge({ amount: 500n });
    if (charge.state !== "charged") throw new Error("Not charged.");
    charge.deliver();
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: 500n });
    }, patience);
    const [row] = await readClaim();
    if (row === undefined) throw new Error("The claim has no row.");
    expect(row.voucher.maxClaimableAmount).toBe(price);
    const stolen = await vi.waitFor(async () => {
      const answer = await facilitator.channels?.admit({
        network: here.devnet.network,
        route: "GET /other",
        presented: {
          channelConfig: config,
          voucher: {
            channelId: channels.idOf(config),
            maxClaimableAmount: price,
            signature: row.signature,
          },
        },
        price: price - 500n,
        fingerprint: "GET /other",
        isSafe: true,
        isGone: () => false,
      });
      expect(answer?.state).not.toBe("busy");
      return answer;
    }, patience);
    expect(stolen).toMatchObject({ state: "corrected", voucherState: undefined });
    const next = await admit(facilitator, config, 500n + price);
    expect(next.state).toBe("admitted");
  });

  it("is not the one of a charge that its handler may take back, and closes no channel", async () => {
    const { here, channels, start, admit, buy } = buyers;
    const facilitator = await start({ claimCost: 100n, mostAtRisk: price / 2n });
    const config = channels.configOf();
    await channels.deposit(config, 20_000n);
    await here.devnet.setAutomine(false);
    await buy(facilitator, config, price);
    const admission = await admit(facilitator, config, 2n * price);
    if (admission.state !== "admitted") throw new Error(admission.state);
    const charge = await admission.run.charge({ amount: price });
    if (charge.state !== "charged") throw new Error("Not charged.");
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: price });
    }, patience);
    expect(await charge.lower(0n)).toBe(true);
    const next = await admit(facilitator, config, 2n * price);
    expect(next.state).toBe("admitted");
  });

  it("a charge that a withdrawal would take stays charged, and its buyer has its answer", async () => {
    const { here, channels, start, admit, buy, present } = buyers;
    const facilitator = await start({ claimCost: 100n });
    const config = channels.configOf();
    await channels.deposit(config, 20_000n);
    await buy(facilitator, config, price);
    const admission = await admit(facilitator, config, 2n * price);
    if (admission.state !== "admitted") throw new Error(admission.state);
    const charge = await admission.run.charge({ amount: price });
    if (charge.state !== "charged") throw new Error("Not charged.");
    await channels.withdraw(config, 20_000n);
    await here.devnet.client.increaseTime({ seconds: 451 });
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: 2n * price });
    }, patience);
    // Its handler fails now. The escrow has paid: another request of this price would cost two.
    expect(await charge.lower(0n)).toBe(false);
    await charge.giveUp();
    const again = await vi.waitFor(async () => {
      const answer = await present(facilitator, config, 2n * price);
      expect(answer.state).not.toBe("busy");
      return answer;
    }, patience);
    if (again.state !== "repeated") throw new Error(again.state);
    expect(again.repeat).toMatchObject({ amount: price, sealedAnswer: undefined });
    expect(await again.repeat.beginRun()).toBe(true);
    again.repeat.deliver();
  });
});
