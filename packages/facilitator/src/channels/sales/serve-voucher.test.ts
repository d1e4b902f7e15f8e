import { systemClock } from "@coinslot/chain";
import { StoppedError } from "@coinslot/protocol";
import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { findDues } from "../../ledger/channels/channel-dues.ts";
import { readChannel } from "../../ledger/channels/open-channel.ts";
import {
  createVoucherBuyer,
  network,
  price,
  repeatOf,
  runOf,
  salesForEachTest,
} from "../../testing/sales-scene.ts";
import { engines } from "../../testing/settling-devnet.ts";

describe.each(engines)("a voucher at a seller's process, on %s", (engine) => {
  const scene = salesForEachTest(engine);

  it("buys, is charged on the row, and makes the channel due", async () => {
    const sales = scene.open(scene.first);
    const charge = await scene.buy(sales, 10n);
    expect(charge).toMatchObject({
      state: "charged",
      amount: 10n,
      channelState: { balance: 1_000n, totalClaimed: 0n, chargedCumulativeAmount: 10n },
    });
    expect(await scene.buy(sales, 20n, 4n)).toMatchObject({
      channelState: { chargedCumulativeAmount: 14n },
    });
    expect(await scene.buy(sales, 24n)).toMatchObject({ state: "charged" });
    expect(await readChannel(scene.first, scene.buyer.key)).toMatchObject({
      charged: 24n,
      voucher: { ceiling: 24n },
    });
    expect(await findDues(scene.first, { network, limit: 10 })).toHaveLength(1);
  });

  it("a voucher that charged nothing is in no claim, where all could read it and buy with it", async () => {
    const sales = scene.open(scene.first);
    await scene.buy(sales, 10n);
    await scene.buy(sales, 20n, 0n);
    expect(await readChannel(scene.first, scene.buyer.key)).toMatchObject({
      voucher: { ceiling: 10n },
    });
    const charge = await runOf(await sales.admit(await scene.buyer.present(20n))).charge({
      amount: 10n,
    });
    if (charge.state !== "charged") throw new Error("Not charged.");
    expect(await charge.lower(0n)).toBe(true);
    expect(await readChannel(scene.first, scene.buyer.key)).toMatchObject({
      charged: 10n,
      voucher: { ceiling: 10n },
    });
  });

  it("a voucher that a claim has shown to all buys nothing, and the next one does", async () => {
    const sales = scene.open(scene.first);
    await scene.buy(sales, 10n, 3n);
    const stolen = await scene.buyer.present(10n, { price: 7n, fingerprint: "GET /other" });
    const { signature } = stolen.presented.voucher;
    await scene.shared.read(
      sql`insert into channel_claims (network, contract, channel_id, transaction_id, total_claimed,
        ceiling, signature, state, created_at) values (${network}, ${scene.buyer.key.contract},
        ${scene.buyer.key.channelId}, 'claim', ${scene.first.dialect.amount.encode(3n)},
        ${scene.first.dialect.amount.encode(10n)}, ${signature}, 'done', 1)`,
    );
    scene.chain = {
      balance: 1_000n,
      totalClaimed: 3n,
      withdrawal: undefined,
      refundNonce: 0n,
      published: 10n,
    };
    expect(await sales.admit(stolen)).toMatchObject({
      state: "corrected",
      voucherState: undefined,
    });
    const unknown = await scene.buyer.present(9n, { price: 6n, fingerprint: "GET /other" });
    runOf(await sales.admit(unknown));
  });

  it("a voucher that all can read gets no proof that could buy", async () => {
    const sales = scene.open(scene.first);
    await scene.buy(sales, 10n);
    await scene.buy(sales, 20n, 3n);
    scene.chain = { balance: 1_000n, totalClaimed: 10n, withdrawal: undefined, refundNonce: 0n };
    const known = await sales.admit(await scene.buyer.present(10n, { fingerprint: "GET /other" }));
    expect(known).toEqual({
      state: "refused",
      reason: "invalid_batch_settlement_evm_cumulative_below_claimed",
    });
    const own = await sales.admit(await scene.buyer.present(30n));
    expect(own).toMatchObject({ state: "corrected", voucherState: { signedMaxClaimable: 20n } });
  });

  it("a voucher of any other ceiling is corrected with the voucher that proves the state, and runs nothing", async () => {
    const sales = scene.open(scene.first);
    const paid = await scene.buyer.present(10n);
    await scene.buy(sales, 10n);
    for (const ceiling of [1n, 10n, 19n, 21n, 2n ** 128n - 1n]) {
      expect(await sales.admit(await scene.buyer.present(ceiling))).toMatchObject({
        state: "corrected",
        channelState: { chargedCumulativeAmount: 10n },
        voucherState: {
          signedMaxClaimable: 10n,
          signature: paid.presented.voucher.signature,
        },
      });
    }
    expect(await scene.buy(sales, 20n)).toMatchObject({ state: "charged" });
  });

  it("a voucher of an unknown channel begins at what the chain has paid, never at the buyer's number", async () => {
    const sales = scene.open(scene.first);
    scene.chain = { balance: 1_000n, totalClaimed: 300n, withdrawal: undefined, refundNonce: 0n };
    expect(await sales.admit(await scene.buyer.present(510n))).toMatchObject({
      state: "corrected",
      channelState: { chargedCumulativeAmount: 300n },
      voucherState: undefined,
    });
    expect(await scene.buy(sales, 310n)).toMatchObject({ state: "charged" });
  });

  it("a voucher of a channel without money is refused, and writes no row", async () => {
    const sales = scene.open(scene.first);
    scene.chain = { balance: 0n, totalClaimed: 0n, withdrawal: undefined, refundNonce: 0n };
    expect(await sales.admit(await scene.buyer.present(10n))).toEqual({
      state: "refused",
      reason: "invalid_batch_settlement_evm_channel_not_found",
    });
    expect(await readChannel(scene.first, scene.buyer.key)).toBeUndefined();
  });

  it("a voucher on channels without money has a limit for each caller: each costs a look at the chain", async () => {
    const sales = scene.open(scene.first);
    scene.chain = { balance: 0n, totalClaimed: 0n, withdrawal: undefined, refundNonce: 0n };
    const request = await scene.buyer.present(10n, { limitKey: "caller" });
    for (let count = 0; count < 30; count += 1) {
      expect(await sales.admit(request)).toMatchObject({ state: "refused" });
    }
    expect(await sales.admit(request)).toEqual({ state: "busy", retryAfterSeconds: 60 });
    expect(await sales.admit({ ...request, limitKey: "other" })).toMatchObject({
      state: "refused",
    });
    scene.shared.wait(60_000);
    expect(await sales.admit(request)).toMatchObject({ state: "refused" });
  });

  it("a voucher on channels without money has that limit in a burst, which is no other buyer's", async () => {
    const sales = scene.open(scene.first);
    const good = await scene.buyer.present(10n, { limitKey: "caller" });
    const charge = await runOf(await sales.admit(good)).charge({ amount: price });
    if (charge.state === "charged") charge.deliver();
    const funded = scene.chain;
    scene.chain = { balance: 0n, totalClaimed: 0n, withdrawal: undefined, refundNonce: 0n };
    scene.looks = 0;
    const burst = Array.from({ length: 100 }, async () =>
      sales.admit(await createVoucherBuyer().present(10n, { limitKey: "caller" })),
    );
    const states = (await Promise.all(burst)).map(({ state }) => state);
    expect(scene.looks).toBe(30);
    expect(states.filter((state) => state === "busy")).toHaveLength(70);
    scene.chain = funded;
    expect(await sales.admit(await scene.buyer.present(20n, { limitKey: "caller" }))).toMatchObject(
      { state: "admitted" },
    );
  });

  it("a voucher on new channels with money counts against no caller", async () => {
    const sales = scene.open(scene.first);
    for (let count = 0; count < 40; count += 1) {
      const request = await createVoucherBuyer().present(10n, { limitKey: "caller" });
      runOf(await sales.admit(request));
    }
  });

  it("a voucher on new channels with money waits for its turn in a burst, and is not refused", async () => {
    const sales = scene.open(scene.first);
    const burst = Array.from({ length: 100 }, async () =>
      sales.admit(await createVoucherBuyer().present(10n, { limitKey: "caller" })),
    );
    const states = (await Promise.all(burst)).map(({ state }) => state);
    expect(new Set(states)).toEqual(new Set(["admitted"]));
  });

  it("a voucher on a restored ledger is corrected to what the chain has paid, without a proof that covers less", async () => {
    const sales = scene.open(scene.first);
    await scene.buy(sales, 10n);
    scene.chain = { balance: 1_000n, totalClaimed: 300n, withdrawal: undefined, refundNonce: 0n };
    expect(await sales.admit(await scene.buyer.present(20n))).toEqual({
      state: "corrected",
      channelState: expect.objectContaining({
        totalClaimed: 300n,
        chargedCumulativeAmount: 300n,
      }),
      voucherState: undefined,
    });
    expect(await scene.buy(sales, 310n)).toMatchObject({ state: "charged" });
    expect(await readChannel(scene.first, scene.buyer.key)).toMatchObject({ charged: 310n });
  });

  it("buys nothing while its route is stopped, and a lost answer is served all the same", async () => {
    const sales = scene.open(scene.first);
    const lost = await scene.buyer.present(10n);
    const charge = await runOf(await sales.admit(lost)).charge({ amount: price });
    if (charge.state !== "charged") throw new Error("Not charged");
    await charge.giveUp();
    const stop = { kind: "route", name: "GET /weather", reason: "repairs", stoppedAt: 1 } as const;
    scene.stops.replace([stop]);
    await expect(sales.admit(await scene.buyer.present(20n))).rejects.toThrow(StoppedError);
    repeatOf(await sales.admit(lost)).deliver();
    scene.stops.replace([]);
    expect(await scene.buy(sales, 20n)).toMatchObject({ state: "charged" });
  });

  it("buys nothing near the end of a withdrawal's delay, nor where too much is unclaimed", async () => {
    const sales = scene.open(scene.first);
    await scene.buy(sales, 10n);
    scene.isSelling = false;
    expect(await sales.admit(await scene.buyer.present(20n))).toMatchObject({
      state: "refused",
      reason: "invalid_batch_settlement_evm_cumulative_exceeds_balance",
    });
    scene.isSelling = true;
    const much = scene.first.dialect.amount.encode(790n);
    await scene.shared.read(sql`update channels set charged = ${much}`);
    expect(await scene.buy(sales, 800n)).toMatchObject({ state: "charged" });
    expect(await sales.admit(await scene.buyer.present(810n))).toMatchObject({ state: "busy" });
  });

  it("waits while the watcher sees no blocks", async () => {
    const sales = scene.open(scene.first);
    scene.chain = undefined;
    expect(await sales.admit(await scene.buyer.present(10n))).toMatchObject({ state: "busy" });
  });

  it("leaves no timer behind once its sales are closed", async () => {
    const timers: (() => void)[] = [];
    const setTimer = (run: () => void) => {
      timers.push(run);
      return () => undefined;
    };
    const sales = scene.open(scene.first, { clock: { ...systemClock, setTimer } });
    timers[0]?.();
    await sales.close();
    expect(timers).toHaveLength(1);
  });
});
