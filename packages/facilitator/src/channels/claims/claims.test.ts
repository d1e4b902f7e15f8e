import { once } from "node:events";
import { channelEventsOf } from "@coinslot/devnet";
import { useProgram } from "@coinslot/devnet/use-program";
import type { ChannelConfig } from "@coinslot/protocol";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  type ClaimingDevnet,
  patience,
  price,
  startClaimingDevnet,
} from "../../testing/claiming-devnet.ts";
import { settlingProgram, spawnSettling } from "../../testing/settling-child.ts";
import { enginesByDay } from "../../testing/settling-devnet.ts";

const program = useProgram(settlingProgram);

describe.each(enginesByDay("postgres"))("claims of channels, on %s", (engine) => {
  let here: ClaimingDevnet;
  let channels: ClaimingDevnet["channels"];
  let config: ChannelConfig;

  beforeEach(async () => {
    here = await startClaimingDevnet(engine);
    channels = here.channels;
    config = channels.configOf();
  });

  afterEach(() => here.stop());

  it("answer a withdrawal before its delay ends, and what is left goes to the payer", async () => {
    const facilitator = await here.start();
    await channels.deposit(config, 10_000n);
    await here.buy(facilitator, 6_000n, config);
    expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: 0n });
    await channels.withdraw(config, 10_000n);
    await here.claimed(6_000n, config);
    const after = await here.admit(facilitator, 8_000n, config);
    expect(after).toMatchObject({
      state: "refused",
      reason: "invalid_batch_settlement_evm_cumulative_exceeds_balance",
    });
    await here.devnet.client.increaseTime({ seconds: 901 });
    const receipt = await channels.finish(config);
    expect(channelEventsOf(receipt)).toMatchObject([{ args: { amount: 4_000n } }]);
    await here.drained(facilitator);
    expect(await here.metric(facilitator, "coinslot_channels_lost_total")).toBe(0);
  });

  it("answer a withdrawal that began while every process was down", async () => {
    const first = await here.start();
    await channels.deposit(config, 10_000n);
    await here.buy(first, 6_000n, config);
    await first.close();
    await channels.withdraw(config, 10_000n);
    await here.devnet.mine(3);
    const second = await here.start();
    await here.claimed(6_000n, config);
    await here.drained(second);
  });

  it.each(["signed", "stored", "broadcast", "included"] as const)(
    "answer a withdrawal by the next process, after a kill once they are %s",
    async (dieAt) => {
      const first = await here.start();
      await channels.deposit(config, 10_000n);
      await here.buy(first, 6_000n, config);
      await first.close();
      await channels.withdraw(config, 10_000n);
      const { privateKey } = here.devnet.accounts.deployer;
      const child = spawnSettling(program(), here, [], { dieAt, channels: { privateKey } });
      const [, signal] = await once(child, "exit");
      expect(signal).toBe("SIGKILL");
      const second = await here.start();
      await here.claimed(6_000n, config);
      await here.drained(second);
    },
  );

  it("are sent again after a reorganisation, and end when they are final", async () => {
    const facilitator = await here.start();
    await channels.deposit(config, 10_000n);
    await here.buy(facilitator, 6_000n, config);
    await here.devnet.mine(3);
    await channels.withdraw(config, 5_000n);
    await vi.waitFor(async () => {
      expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: 6_000n });
    }, patience);
    await here.devnet.reorg({ depth: 1 });
    expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: 0n });
    await here.claimed(6_000n, config);
    await here.drained(facilitator);
  });

  it("are due when more is at risk than the seller bears, and are settled when they are final", async () => {
    const facilitator = await here.start({ mostAtRisk: 21_000n });
    const before = await here.balanceOf(config.receiver);
    await channels.deposit(config, 50_000n);
    const other = channels.configOf();
    await channels.deposit(other, 50_000n);
    await here.buy(facilitator, 20_000n, config);
    expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: 0n });
    await here.buy(facilitator, 4_000n, other);
    // Together they are above it: one signer has both.
    await here.claimed(20_000n, config);
    await here.claimed(4_000n, other);
    await here.drained(facilitator);
    expect(await here.balanceOf(config.receiver)).toBe(before);
    await facilitator.close();
    await here.start({ mostAtRisk: 21_000n });
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await here.balanceOf(config.receiver)).toBe(before + 24_000n);
    }, patience);
  });

  it("are settled at once with a receiver that had no settle, also of little", async () => {
    const facilitator = await here.start();
    const before = await here.balanceOf(config.receiver);
    await channels.deposit(config, 10_000n);
    await here.buyOnce(facilitator, price, config);
    await channels.withdraw(config, 10_000n);
    await here.claimed(price, config);
    await facilitator.close();
    await here.devnet.mine(4);
    await here.start();
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await here.balanceOf(config.receiver)).toBe(before + price);
    }, patience);
  });

  it("leave out a channel that cannot be claimed, and pay the others", async () => {
    const facilitator = await here.start({ mostAtRisk: 5_000n });
    const others = [channels.configOf(), channels.configOf()];
    for (const each of [config, ...others]) await channels.deposit(each, 10_000n);
    await here.buy(facilitator, 4_000n, config);
    // All of it goes back to the payer: nothing is left that a claim could ask for.
    await channels.refund(config, 10_000n);
    for (const each of others) await here.buy(facilitator, 4_000n, each);
    for (const each of others) await here.claimed(4_000n, each);
    await vi.waitFor(async () => {
      expect(await here.metric(facilitator, "coinslot_channels_lost_total")).toBe(4_000);
    }, patience);
    expect(await here.admit(facilitator, 6_000n, config)).toMatchObject({ state: "refused" });
  });

  it("count as lost what was sold on a deposit that left the chain", async () => {
    const facilitator = await here.start();
    await channels.deposit(config, 10_000n);
    const sold = await here.buy(facilitator, 4_000n, config);
    expect(sold).toBe(4_000n);
    const { number } = await here.devnet.client.getBlock();
    const blocks = await here.devnet.client.getLogs({ fromBlock: 0n });
    const deposit = blocks.findLast(({ address }) => /^0x4020074e/i.test(address));
    await here.devnet.reorg({ depth: Number(number - (deposit?.blockNumber ?? 0n)) + 1 });
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await here.metric(facilitator, "coinslot_channels_lost_total")).toBe(4_000);
    }, patience);
  });

  if (engine === "postgres") {
    it("claims of two processes on one ledger wait for a charge that may be lowered, and are sent once", async () => {
      const [first, second] = [await here.start(), await here.start()];
      await channels.deposit(config, 10_000n);
      await here.buy(first, 4_000n, config);
      const more = await here.admit(second, 6_000n, config);
      if (more.state !== "admitted") throw new Error(more.state);
      const charge = await more.run.charge({ amount: price });
      if (charge.state !== "charged") throw new Error("Not charged.");
      await channels.withdraw(config, 10_000n);
      await here.claimed(4_000n, config);
      charge.deliver();
      await here.claimed(6_000n, config);
      await Promise.all([here.drained(first), here.drained(second)]);
      const { relayer } = here.devnet.accounts;
      const sent = await here.devnet.client.getTransactionCount({ address: relayer.address });
      // The fixture sends the deposit by the relayer's account, too.
      expect(sent).toBe(3);
    });
  }

  it("are refused credit while the chain is not followed", async () => {
    const first = await here.start();
    await channels.deposit(config, 10_000n);
    await here.buy(first, 2_000n, config);
    await first.close();
    const late = await here.start({}, { now: () => Date.now() + 300_000 });
    const signature = await channels.signVoucher(config, 4_000n);
    const admission = await late.channels?.admit({
      network: here.devnet.network,
      route: "GET /weather",
      presented: {
        channelConfig: config,
        voucher: { channelId: channels.idOf(config), maxClaimableAmount: 4_000n, signature },
      },
      price,
      fingerprint: "GET /weather",
      isSafe: true,
      isGone: () => false,
    });
    expect(admission).toMatchObject({ state: "busy" });
  });
});
