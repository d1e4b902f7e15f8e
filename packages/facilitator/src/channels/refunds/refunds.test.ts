import { once } from "node:events";
import { useProgram } from "@coinslot/devnet/use-program";
import type { ChannelConfig } from "@coinslot/protocol";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { accounts } from "../../ledger/books-schema.ts";
import { patience, price } from "../../testing/claiming-devnet.ts";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import {
  type RefundingChannels,
  startRefundingChannels,
} from "../../testing/refunding-channels.ts";
import { settlingProgram, spawnSettling } from "../../testing/settling-child.ts";
import { enginesByDay } from "../../testing/settling-devnet.ts";

const program = useProgram(settlingProgram);

/** All places of a refund at which a process may die. */
const killPoints = [
  "channel_refund_locked",
  "channel_refund_signed",
  "signed",
  "stored",
  "broadcast",
  "included",
  "channel_refund_noted",
  "channel_refund_ended",
] as const;

describe.each(enginesByDay("postgres"))("refunds of channels, on %s", (engine) => {
  let here: RefundingChannels;
  let channels: RefundingChannels["channels"];
  let config: ChannelConfig;

  beforeEach(async () => {
    here = await startRefundingChannels(engine);
    channels = here.channels;
    config = channels.configOf();
    await channels.deposit(config, 10_000n);
  });

  afterEach(() => here.stop());

  it("give back all that was not charged, and claim what was, in one transaction", async () => {
    const facilitator = await here.start();
    await here.buy(facilitator, 6_000n, config);
    const before = await here.balanceOf(config.payer);
    const outcome = await here.refund(facilitator, config, 6_000n);
    expect(outcome).toMatchObject({
      state: "refunded",
      amount: 4_000n,
      transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      channelState: {
        channelId: channels.idOf(config),
        balance: 6_000n,
        totalClaimed: 6_000n,
        refundNonce: 1n,
        chargedCumulativeAmount: 6_000n,
      },
    });
    expect(await here.balanceOf(config.payer)).toBe(before + 4_000n);
    await here.drained(facilitator);
    expect(await here.unlocked(facilitator, config, 8_000n)).toMatchObject({
      reason: "invalid_batch_settlement_evm_cumulative_exceeds_balance",
    });
    expect(await here.lost(facilitator)).toBe(0);
    expect(await here.refund(facilitator, config, 6_000n)).toMatchObject({
      state: "refunded",
      amount: 4_000n,
    });
    expect(await channels.stateOf(config)).toMatchObject({ refundNonce: 1n });
  });

  it("give back the part that was asked for, and the rest is sold on", async () => {
    const facilitator = await here.start();
    await here.buy(facilitator, 2_000n, config);
    const asked = await here.refund(facilitator, config, 2_000n, 5_000n);
    expect(asked).toMatchObject({ state: "refunded", amount: 5_000n });
    expect((await here.unlocked(facilitator, config, 4_000n)).state).toBe("admitted");
    // A repeated question has the same answer.
    const again = await here.refund(facilitator, config, 2_000n, 5_000n);
    expect(again).toMatchObject({ state: "refunded", amount: 5_000n });
    expect(await channels.stateOf(config)).toMatchObject({ refundNonce: 1n, balance: 5_000n });
    // Its gas costs 5,000: less is given back where it is all that is left.
    expect(await here.refund(facilitator, config, 2_000n, 2_999n)).toMatchObject({
      state: "refused",
      reason: "invalid_batch_settlement_evm_refund_amount_invalid",
    });
    expect(await here.refund(facilitator, config, 2_000n, 9_000n)).toMatchObject({
      state: "refunded",
      amount: 3_000n,
    });
  });

  it("correct a buyer that is out of step, and refuse one of whose money all is charged", async () => {
    const facilitator = await here.start();
    await here.buy(facilitator, 4_000n, config);
    expect(await here.refund(facilitator, config, 2_000n)).toMatchObject({
      state: "corrected",
      channelState: { chargedCumulativeAmount: 4_000n },
      voucherState: { signedMaxClaimable: 4_000n },
    });
    expect(await here.refund(facilitator, config, 4_000n, 0n)).toMatchObject({
      reason: "invalid_batch_settlement_evm_refund_amount_invalid",
    });
    await here.buyOnce(facilitator, 6_000n, config);
    await here.buyOnce(facilitator, 8_000n, config);
    await here.buyOnce(facilitator, 10_000n, config);
    expect(await here.refund(facilitator, config, 10_000n)).toMatchObject({
      reason: "invalid_batch_settlement_evm_refund_no_balance",
    });
    expect(await channels.stateOf(config)).toMatchObject({ refundNonce: 0n });
  });

  it("sell nothing while they run, and are one, however often they are asked for at once", async () => {
    const facilitator = await here.start();
    await here.buy(facilitator, 2_000n, config);
    const outcomes = await Promise.all(
      Array.from({ length: 5 }, () => here.refund(facilitator, config, 2_000n)),
    );
    expect(new Set(outcomes.map(({ state }) => state))).toEqual(new Set(["refunded"]));
    expect(await channels.stateOf(config)).toMatchObject({ balance: 2_000n, refundNonce: 1n });
    expect(await here.ask(facilitator, 4_000n, config)).toMatchObject({ state: "busy" });
  });

  it("wait for the request of the channel that runs", async () => {
    const facilitator = await here.start();
    const admission = await here.admit(facilitator, price, config);
    if (admission.state !== "admitted") throw new Error(admission.state);
    const asked = here.refund(facilitator, config, price);
    const charge = await admission.run.charge({ amount: price });
    if (charge.state !== "charged") throw new Error("Not charged.");
    charge.deliver();
    expect(await asked).toMatchObject({ state: "refunded", amount: 8_000n });
  });

  it("are bounded for each signer, and for the network", async () => {
    const facilitator = await here.start({ maxRefundsPerSigner: 1, claimCost: 200n });
    await here.buy(facilitator, 2_000n, config);
    await here.refund(facilitator, config, 2_000n, 1_000n);
    await here.unlocked(facilitator, config, 4_000n);
    expect(await here.refund(facilitator, config, 2_000n, 2_000n)).toMatchObject({
      state: "limited",
      retryAfterSeconds: expect.any(Number),
    });
  });

  it("are in step after a reorganisation that takes them back", async () => {
    const facilitator = await here.start();
    await here.buy(facilitator, 6_000n, config);
    await here.refund(facilitator, config, 6_000n);
    await here.devnet.reorg({ depth: 1 });
    expect(await channels.stateOf(config)).toMatchObject({ refundNonce: 0n });
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await channels.stateOf(config)).toMatchObject({
        balance: 6_000n,
        totalClaimed: 6_000n,
        refundNonce: 1n,
      });
    }, patience);
    await here.unlocked(facilitator, config, 8_000n);
    expect(await here.lost(facilitator)).toBe(0);
  });

  it("leave all that was charged where a stranger sends the signed part alone", async () => {
    const facilitator = await here.start();
    await here.buy(facilitator, 6_000n, config);
    await here.devnet.setAutomine(false);
    const asked = here.refund(facilitator, config, 6_000n);
    await here.stealRefund();
    await here.devnet.mine(1);
    await here.devnet.setAutomine(true);
    expect(await asked).toMatchObject({ state: "refunded", amount: 4_000n });
    await here.unlocked(facilitator, config, 8_000n);
    expect(await channels.stateOf(config)).toMatchObject({ balance: 6_000n, refundNonce: 1n });
    // The claim beside it was reverted with ours, and is due again.
    await channels.withdraw(config, 6_000n);
    await here.claimed(6_000n, config);
    expect(await here.lost(facilitator)).toBe(0);
  });

  it("are done where the receiver has used their nonce up, and the rest may be asked for", async () => {
    const facilitator = await here.start();
    await here.buy(facilitator, 6_000n, config);
    await here.devnet.setAutomine(false);
    const asked = here.refund(facilitator, config, 6_000n);
    await here.refundInPool();
    await here.refundFirst(config, 1_000n);
    await here.devnet.mine(1);
    await here.devnet.setAutomine(true);
    expect(await asked).toMatchObject({ state: "refunded", amount: 1_000n });
    expect(await here.unlocked(facilitator, config, 8_000n)).toMatchObject({ state: "admitted" });
    expect(await channels.stateOf(config)).toMatchObject({ balance: 9_000n, refundNonce: 1n });
    expect(await here.refund(facilitator, config, 6_000n)).toMatchObject({
      state: "refunded",
      amount: 3_000n,
    });
    await here.unlocked(facilitator, config, 8_000n);
    expect(await here.lost(facilitator)).toBe(0);
  });

  it("refunds of a payer that withdraws are signed after the claim of what it owes", async () => {
    const facilitator = await here.start();
    await here.buy(facilitator, 6_000n, config);
    await channels.withdraw(config, 4_000n);
    await here.devnet.client.increaseTime({ seconds: 901 });
    await here.devnet.mine(1);
    await here.devnet.setAutomine(false);
    const asked = here.refund(facilitator, config, 6_000n);
    // A signed refund would take what the payer owes, once the withdrawal has taken the rest.
    expect(await here.firstInPool()).toBe("claimWithSignature");
    await here.finishFirst(config);
    await here.devnet.mine(1);
    await here.devnet.setAutomine(true);
    expect(await channels.stateOf(config)).toMatchObject({ balance: 6_000n });
    await here.devnet.mine(3);
    expect(await asked).toMatchObject({
      state: "refused",
      reason: "invalid_batch_settlement_evm_refund_no_balance",
    });
    expect(await channels.stateOf(config)).toMatchObject({
      balance: 6_000n,
      totalClaimed: 6_000n,
      refundNonce: 0n,
    });
    expect(await here.lost(facilitator)).toBe(0);
  });

  it("lower the locked money of the books", async () => {
    const facilitator = await here.start();
    await here.buy(facilitator, 6_000n, config);
    await here.refund(facilitator, config, 6_000n);
    await here.unlocked(facilitator, config, 8_000n);
    const { db, dialect } = await here.openReads();
    const { decode } = dialect.amount;
    const entries = await db.selectFrom("book_entries").selectAll().execute();
    const locked = entries.reduce((sum, { debit, credit, amount }) => {
      if (debit === accounts.locked) return sum + decode(amount);
      return credit === accounts.locked ? sum - decode(amount) : sum;
    }, 0n);
    expect(locked).toBe(0n);
  });

  it("are not signed where a node says that the escrow refuses them, and may be asked for again", async () => {
    let lies = true;
    const node = await startNodeProxy(here.devnet.rpcUrl, async (call, ask) => {
      const isTrial =
        lies && call.method === "eth_call" && /"data":"0xac9650d8/.test(JSON.stringify(call));
      return isTrial ? { error: { code: 3, message: "execution reverted" } } : ask();
    });
    onTestFinished(() => node.close());
    const facilitator = await here.start({}, { network: { rpcUrls: [node.url] } });
    await here.buy(facilitator, 2_000n, config);
    expect(await here.refund(facilitator, config, 2_000n)).toMatchObject({
      state: "refused",
      reason: "invalid_batch_settlement_evm_refund_simulation_failed",
    });
    expect(await here.buyOnce(facilitator, 4_000n, config)).toBe(true);
    lies = false;
    expect(await here.refund(facilitator, config, 4_000n)).toMatchObject({ amount: 6_000n });
  });

  it.each(killPoints)("are carried on by another process after a kill at %s", async (dieAt) => {
    const first = await here.start();
    await here.buy(first, 6_000n, config);
    await first.close();
    const { privateKey } = here.devnet.accounts.deployer;
    const child = spawnSettling(program(), here, [], {
      dieAt,
      channels: { privateKey },
      channelRefund: await here.payloadOf(config, 6_000n),
    });
    const ended = once(child, "exit");
    let isOver = false;
    void ended.then(() => {
      isOver = true;
    });
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(isOver).toBe(true);
    }, patience);
    expect((await ended)[1]).toBe("SIGKILL");
    const second = await here.start();
    expect(await here.refund(second, config, 6_000n)).toMatchObject({
      state: "refunded",
      amount: 4_000n,
    });
    await here.unlocked(second, config, 8_000n);
    expect(await channels.stateOf(config)).toMatchObject({
      balance: 6_000n,
      totalClaimed: 6_000n,
      refundNonce: 1n,
    });
    expect(await here.lost(second)).toBe(0);
  });

  if (engine === "postgres") {
    it("wait for a request that runs in another process", async () => {
      const [first, second] = [await here.start(), await here.start()];
      await here.buy(first, 2_000n, config);
      const admission = await here.admit(first, 4_000n, config);
      if (admission.state !== "admitted") throw new Error(admission.state);
      expect(await here.refundOnce(second, config, 2_000n)).toMatchObject({ state: "busy" });
      const charge = await admission.run.charge({ amount: price });
      if (charge.state !== "charged") throw new Error("Not charged.");
      charge.deliver();
      expect(await here.refund(second, config, 2_000n)).toMatchObject({ state: "corrected" });
      const outcomes = await Promise.all([
        here.refund(first, config, 4_000n),
        here.refund(second, config, 4_000n),
      ]);
      expect(outcomes).toMatchObject([{ amount: 6_000n }, { amount: 6_000n }]);
      expect(await channels.stateOf(config)).toMatchObject({ balance: 4_000n, refundNonce: 1n });
    });
  }
});
