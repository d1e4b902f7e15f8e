import type { ChannelConfig } from "@coinslot/protocol";
import { erc20Abi, parseEther } from "viem";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { deposit, present, signDepositRequest } from "../../testing/channel-deposits.ts";
import {
  type ClaimingDevnet,
  patience,
  price,
  startClaimingDevnet,
} from "../../testing/claiming-devnet.ts";

describe("a deposit is decided before money moves, and", () => {
  let here: ClaimingDevnet;
  let channels: ClaimingDevnet["channels"];
  let config: ChannelConfig;

  beforeEach(async () => {
    here = await startClaimingDevnet("sqlite");
    channels = here.channels;
    config = channels.configOf();
  });

  afterEach(() => here.stop());

  const sign = (options?: Parameters<typeof signDepositRequest>[2], channel = config) =>
    signDepositRequest(here, channel, options);

  it("is not executed by a voucher that a claim has shown", async () => {
    const facilitator = await here.start({ claimCost: 100n, mostAtRisk: 400n });
    await channels.deposit(config, price);
    const admission = await here.admit(facilitator, price, config);
    if (admission.state !== "admitted") throw new Error(admission.state);
    const charge = await admission.run.charge({ amount: 500n });
    if (charge.state !== "charged") throw new Error("Not charged.");
    charge.deliver();
    await here.claimed(500n, config);
    const { blockNumber } = await channels.withdraw(config, 1_000n);
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      const watched = await here.metric(facilitator, "coinslot_channels_watched_block");
      expect(watched).toBeGreaterThanOrEqual(Number(blockNumber));
    }, patience);
    const request = { ...(await sign({ ceiling: price })), price: price - 500n };
    expect(await deposit(here, facilitator, request)).toMatchObject({ state: "corrected" });
    expect(await channels.stateOf(config)).toMatchObject({ balance: price });
  });

  it("pays for what was lost on its channel, where it is enough for that", async () => {
    const { client, accounts } = here.devnet;
    const { address } = accounts.relayer;
    const facilitator = await here.start({ claimCost: 100n });
    await channels.deposit(config, 10_000n);
    await here.buy(facilitator, 6_000n, config);
    await client.setBalance({ address, value: 0n });
    await channels.withdraw(config, 10_000n);
    await client.increaseTime({ seconds: 901 });
    await channels.finish(config);
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await here.lost(facilitator)).toBe(6_000);
    }, patience);
    await client.setBalance({ address, value: parseEther("1") });
    const ceiling = 6_000n + price;
    const little = { ...(await sign({ ceiling, amount: 7_000n })), minDeposit: 1n };
    expect(await deposit(here, facilitator, little)).toMatchObject({
      state: "refused",
      reason: "invalid_batch_settlement_evm_cumulative_exceeds_balance",
    });
    const enough = { ...(await sign({ ceiling, amount: 9_000n })), minDeposit: 1n };
    expect(await deposit(here, facilitator, enough)).toMatchObject({ state: "deposited" });
    expect(await here.buyOnce(facilitator, ceiling, config)).toBe(true);
  });

  it("counts for its caller where its payer has promised its balance to others", async () => {
    const { client, accounts } = here.devnet;
    const facilitator = await here.start();
    await channels.deposit(config, price);
    await here.buyOnce(facilitator, price, config);
    await client.setBalance({ address: accounts.relayer.address, value: 0n });
    const balance = await client.readContract({
      address: here.devnet.token,
      abi: erc20Abi,
      functionName: "balanceOf",
      args: [accounts.buyer.address],
    });
    const all = { ...(await sign({ amount: balance }, channels.configOf())), timeoutMs: 1 };
    expect(await present(facilitator, all)).toMatchObject({ state: "pending" });
    const request = { ...(await sign({ ceiling: 2n * price })), limitKey: "caller" };
    for (let count = 1; count <= 30; count += 1) {
      expect(await present(facilitator, request)).toEqual({ state: "busy", retryAfterSeconds: 5 });
    }
    const limited = await present(facilitator, request);
    if (limited.state !== "busy") throw new Error(limited.state);
    expect(limited.retryAfterSeconds).toBeGreaterThan(5);
  });
});
