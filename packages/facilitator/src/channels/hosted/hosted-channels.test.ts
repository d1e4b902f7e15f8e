import { channelEventsOf, withDatabase } from "@coinslot/devnet";
import {
  CallerLimitedError,
  type ChannelConfig,
  channelContracts,
  toLowerHex,
} from "@coinslot/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CoinslotFacilitator } from "../../create-facilitator.ts";
import { type HostingDevnet, startHostingDevnet } from "../../testing/hosting-devnet.ts";
import { enginesByDay } from "../../testing/settling-devnet.ts";

const hash = expect.stringMatching(/^0x[0-9a-f]{64}$/);
const notAllowed = { state: "refused", reason: "recipient_not_allowed" };

describe.each(enginesByDay("sqlite"))("channels of callers, on %s", (engine) => {
  let here: HostingDevnet;
  let facilitator: CoinslotFacilitator;

  beforeEach(async () => {
    here = await startHostingDevnet(engine);
    facilitator = await here.start();
  });
  afterEach(() => here?.stop());

  /** Names of the escrow's events that name a channel. */
  async function eventsOf(config: ChannelConfig): Promise<string[]> {
    const { settlement: address } = channelContracts;
    const logs = await here.devnet.client.getLogs({ address, fromBlock: 0n });
    const own = logs.filter(({ topics }) => topics[1] === here.channels.idOf(config));
    return channelEventsOf({ logs: own }).map(({ eventName }) => eventName);
  }

  /** One after the other: their payer's nonces are in order. */
  async function openAll(...amounts: bigint[]): Promise<ChannelConfig[]> {
    const opened: ChannelConfig[] = [];
    for (const amount of amounts) opened.push(await here.open(amount));
    return opened;
  }

  const transactions = () => here.devnet.client.getTransactionCount(here.devnet.accounts.relayer);

  it("claims many vouchers in one transaction, once for a repeated request", async () => {
    const { channels } = here;
    const opened = await openAll(9_000n, 9_000n, 9_000n);
    const rows = await Promise.all(opened.map((config) => channels.rowOf(config, 4_000n)));
    const before = await transactions();
    const first = await here.settle(facilitator, here.claim(rows));
    expect(first).toEqual({ state: "done", transaction: hash });
    for (const config of opened) {
      expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: 4_000n });
    }
    expect(await here.settle(facilitator, here.claim(rows))).toEqual(first);
    expect((await transactions()) - before).toBe(1);
    // Nothing that was charged, and no row of a sale.
    const sold = await withDatabase(here.ledger.url, ({ read }) =>
      read(
        "select channel_id from channels union all select channel_id from channel_terms union all select channel_id from channel_claims",
      ),
    );
    expect(sold).toEqual([]);
  });

  it("leaves a bad row out of a claim that it signs, claims its neighbours and names it", async () => {
    const { channels } = here;
    const opened = await openAll(9_000n, 2_000n, 9_000n);
    const [, bad] = opened;
    const rows = await Promise.all(opened.map((config) => channels.rowOf(config, 4_000n)));
    const answer = await here.settle(facilitator, here.claim(rows));
    const id = bad && channels.idOf(bad);
    expect(answer).toEqual({
      state: "refused",
      reason: "invalid_batch_settlement_evm_claim_simulation_failed",
      message: `Not to be claimed: ${id} ClaimExceedsBalance`,
      transaction: hash,
    });
    const claimed = await Promise.all(opened.map((config) => channels.stateOf(config)));
    expect(claimed.map(({ totalClaimed }) => totalClaimed)).toEqual([4_000n, 0n, 4_000n]);

    // Once it can be claimed, the same request claims it.
    if (bad) await here.fund(bad, 5_000n, { salt: `0x${"01".padStart(64, "0")}` });
    expect(await here.settle(facilitator, here.claim(rows))).toMatchObject({ state: "done" });
    if (bad) expect(await channels.stateOf(bad)).toMatchObject({ totalClaimed: 4_000n });
  });

  it("sends nothing of a claim that its caller signed with a bad row, and names the row", async () => {
    const { channels } = here;
    const opened = await openAll(9_000n, 2_000n);
    const [, bad] = opened;
    const rows = await Promise.all(opened.map((config) => channels.rowOf(config, 4_000n)));
    const before = await transactions();
    const claim = here.claim(rows, await channels.signBatch(rows));
    expect(await here.settle(facilitator, claim)).toEqual({
      state: "refused",
      reason: "invalid_batch_settlement_evm_claim_simulation_failed",
      message: `Not to be claimed: ${bad && channels.idOf(bad)} ClaimExceedsBalance`,
    });
    expect(await transactions()).toBe(before);
  });

  it("refuses a signature of another key than the authorizer's, and sends nothing", async () => {
    const { channels, devnet } = here;
    const config = await here.open(9_000n);
    const rows = [await channels.rowOf(config, 4_000n)];
    const before = await transactions();
    const forged = here.claim(rows, await channels.signBatch(rows, devnet.accounts.buyer));
    const mismatch = "invalid_batch_settlement_evm_authorizer_address_mismatch";
    expect(await here.settle(facilitator, forged)).toMatchObject({ reason: mismatch });
    const other = await here.open(9_000n, {
      receiverAuthorizer: toLowerHex(devnet.accounts.buyer.address),
    });
    const unsigned = here.claim([await channels.rowOf(other, 4_000n)]);
    expect(await here.settle(facilitator, unsigned)).toMatchObject({ reason: mismatch });
    expect(await transactions()).toBe(before);
  });

  it("moves no escrow for a stranger, or for another caller than the receiver's", async () => {
    const { channels, devnet } = here;
    const config = await here.open(9_000n);
    const rows = [await channels.rowOf(config, 4_000n)];
    const { seller, deployer } = devnet.accounts;
    const receiver = seller.address;
    const asked = [
      here.claim(rows),
      here.claim(rows, await channels.signBatch(rows)),
      { type: "settle", receiver, token: devnet.token },
      await here.refund(config, 0n, { amount: 9_000n }),
      await here.deposit(config, { ceiling: 1_000n }),
    ];
    const before = await transactions();
    for (const payload of asked) {
      for (const caller of ["kiosk", "unknown", null]) {
        // The requirements may name a receiver of the asker's.
        for (const payTo of [receiver, deployer.address]) {
          const options = { caller, payTo, config };
          expect(await here.settle(facilitator, payload, options)).toMatchObject(notAllowed);
        }
      }
    }
    const voucher = await here.voucher(config, 4_000n);
    expect(await here.verify(facilitator, voucher, { caller: "kiosk", config })).toMatchObject({
      isValid: false,
      reason: "recipient_not_allowed",
    });
    const mixed = [
      ...rows,
      await channels.rowOf(await here.open(9_000n, { receiver: toLowerHex(deployer.address) }), 1n),
    ];
    expect(await here.settle(facilitator, here.claim(mixed))).toMatchObject(notAllowed);
    expect(await transactions()).toBe(before);
    expect(await channels.stateOf(config)).toMatchObject({ balance: 9_000n, totalClaimed: 0n });
  });

  it("settles what was claimed, once, and answers a repeated request in the same way", async () => {
    const { channels, devnet } = here;
    const receiver = devnet.accounts.seller.address;
    const settle = { type: "settle", receiver, token: devnet.token };
    const config = await here.open(9_000n);
    await here.settle(facilitator, here.claim([await channels.rowOf(config, 4_000n)]));
    const before = await transactions();
    const answers = await Promise.all([
      here.settle(facilitator, settle),
      here.settle(facilitator, settle),
    ]);
    expect(answers[0]).toEqual({ state: "done", transaction: hash, amount: 4_000n });
    expect(answers[1]).toEqual(answers[0]);
    expect(await here.settle(facilitator, settle)).toEqual(answers[0]);
    expect((await transactions()) - before).toBe(1);
    const other = { ...settle, receiver: devnet.accounts.deployer.address };
    const options = { caller: "kiosk", payTo: devnet.accounts.deployer.address };
    expect(await here.settle(facilitator, other, options)).toMatchObject({
      reason: "invalid_batch_settlement_evm_nothing_to_settle",
    });
  });

  it("claims and refunds in one transaction, once, and no other refund by that nonce", async () => {
    const { channels } = here;
    const config = await here.open(9_000n);
    const claims = [await channels.rowOf(config, 4_000n)];
    const refund = await here.refund(config, 4_000n, { amount: 5_000n, claims });
    const first = await here.settle(facilitator, refund);
    expect(first).toMatchObject({
      state: "done",
      transaction: hash,
      payer: config.payer,
      amount: 5_000n,
      channelState: { balance: 4_000n, totalClaimed: 4_000n, refundNonce: 1n },
    });
    expect(await here.settle(facilitator, refund)).toEqual(first);
    const again = await here.refund(config, 4_000n, { amount: 1n, claims });
    expect(await here.settle(facilitator, again)).toMatchObject({
      reason: "invalid_batch_settlement_evm_refund_simulation_failed",
    });
    const next = await here.refund(config, 4_000n, { amount: 1n, refundNonce: 1n });
    expect(await here.settle(facilitator, next)).toMatchObject({
      reason: "invalid_batch_settlement_evm_refund_no_balance",
    });
    expect(await eventsOf(config)).toEqual(["ChannelCreated", "Deposited", "Claimed", "Refunded"]);
  });

  it("executes a deposit once, and answers with the channel after it", async () => {
    const config = here.channels.configOf();
    const payload = await here.deposit(config);
    expect(await here.verify(facilitator, payload, { config })).toMatchObject({
      isValid: true,
      channelState: { balance: 0n },
    });
    const answers = await Promise.all(
      [1, 2].map(() => here.settle(facilitator, payload, { config })),
    );
    expect(answers[0]).toMatchObject({
      state: "done",
      transaction: hash,
      amount: 20_000n,
      channelState: { balance: 20_000n, totalClaimed: 0n },
    });
    expect(answers[1]).toEqual(answers[0]);
    expect(await here.verify(facilitator, payload, { config })).toMatchObject({ isValid: true });
    expect(await eventsOf(config)).toEqual(["ChannelCreated", "Deposited"]);
  });

  it("answers for a deposit that a stranger has executed before", async () => {
    const config = here.channels.configOf();
    const salt = `0x${"ab".repeat(32)}` as const;
    const { transactionHash } = await here.fund(config, 20_000n, { salt });
    const payload = await here.deposit(config, { salt });
    const before = await transactions();
    expect(await here.settle(facilitator, payload, { config })).toMatchObject({
      state: "done",
      transaction: transactionHash,
      channelState: { balance: 20_000n },
    });
    expect(await transactions()).toBe(before);
  });

  it("verifies vouchers against the chain, and none for money that its payer withdraws", async () => {
    const { channels } = here;
    const config = await here.open(9_000n);
    const verify = async (ceiling: bigint) =>
      here.verify(facilitator, await here.voucher(config, ceiling), { config });
    expect(await verify(9_000n)).toEqual({
      isValid: true,
      payer: config.payer,
      channelState: {
        channelId: channels.idOf(config),
        balance: 9_000n,
        totalClaimed: 0n,
        withdrawRequestedAt: 0,
        refundNonce: 0n,
      },
    });
    const exceeds = "invalid_batch_settlement_evm_cumulative_exceeds_balance";
    expect(await verify(9_001n)).toMatchObject({ isValid: false, reason: exceeds });
    await channels.withdraw(config, 6_000n);
    expect(await verify(3_000n)).toMatchObject({ isValid: true });
    expect(await verify(3_001n)).toMatchObject({ isValid: false, reason: exceeds });
    await here.settle(facilitator, here.claim([await channels.rowOf(config, 2_000n)]));
    expect(await verify(2_000n)).toMatchObject({
      reason: "invalid_batch_settlement_evm_cumulative_below_claimed",
    });
    const unknown = await here.voucher(channels.configOf(), 1n);
    expect(await here.verify(facilitator, unknown, { config })).toMatchObject({
      reason: "invalid_batch_settlement_evm_channel_not_found",
    });
  });

  it("sends no more for a caller that has used its gas of an hour up, and serves the others", async () => {
    const { channels, devnet } = here;
    const { deployer } = devnet.accounts;
    const insert = (at: number) =>
      withDatabase(here.ledger.url, ({ execute }) =>
        execute(
          `insert into caller_gas (id, network, caller, gas, created_at) values ('${at}', '${devnet.network}', 'shop', 60000000, ${at})`,
        ),
      );
    const shops = here.claim([await channels.rowOf(await here.open(9_000n), 4_000n)]);
    const others = await here.open(9_000n, { receiver: toLowerHex(deployer.address) });
    const kiosks = here.claim([await channels.rowOf(others, 4_000n)]);
    await insert(Date.now());
    await expect(here.settle(facilitator, shops)).rejects.toThrow(CallerLimitedError);
    const options = { caller: "kiosk", payTo: deployer.address };
    expect(await here.settle(facilitator, kiosks, options)).toMatchObject({ state: "done" });
    await withDatabase(here.ledger.url, ({ execute }) =>
      execute("update caller_gas set created_at = created_at - 3600001"),
    );
    expect(await here.settle(facilitator, shops)).toMatchObject({ state: "done" });
  });
});
