import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import {
  authorization,
  expire,
  hash,
  inclusion,
  order,
  payer,
  queue,
  takeLease,
  transaction,
  wish,
} from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import { getPayments } from "../queries/list-payments.ts";
import { storeTransaction } from "../transactions/store-transaction.ts";
import { enqueuePayment } from "./enqueue-payments.ts";
import { recordOutcomes } from "./record-outcomes.ts";
import { releasePayment } from "./release-payment.ts";
import { reservePayment } from "./reserve-payments.ts";

describe.each(engines)("free runs on %s", (engine) => {
  const { join, wait } = ledgerForEachTest(engine);

  it("are limited per payer for a while", async () => {
    const ledger = await join("one");
    const wanted = wish();
    const again = async () => {
      const reserved = await reservePayment(ledger, wanted);
      if (reserved.outcome === "reserved") {
        await releasePayment(ledger, { token: reserved.token, payer, countsAgainstPayer: true });
      }
      return reserved.outcome;
    };
    expect([await again(), await again(), await again()]).toEqual(Array(3).fill("reserved"));
    expect(await again()).toBe("payer_limited");
    expect(
      await reservePayment(ledger, wish({ id: authorization({ payer: `0x${"ee".repeat(20)}` }) })),
    ).toMatchObject({
      outcome: "reserved",
    });
    wait(1_001);
    expect(await again()).toBe("reserved");
  });

  it("include a run whose payment failed on the chain, and not a pending one", async () => {
    const ledger = await join("one");
    for (const [run, fails] of [false, true, true, true].entries()) {
      const nonce = hash(100 + run);
      const request = wish({ order, id: { ...wish().id, nonce } });
      const reserved = await reservePayment(ledger, request);
      if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
      const { paymentId, token } = reserved;
      const reason = "invalid_exact_evm_transaction_failed";
      if (fails) await recordOutcomes(ledger, [{ failed: [{ ids: [paymentId], reason }] }]);
      const { payer } = request.id;
      await releasePayment(ledger, { token, payer, countsAgainstPayer: "if_failed" });
      // Once only: its token is gone.
      await releasePayment(ledger, { token, payer, countsAgainstPayer: "if_failed" });
    }
    const other = wish({ id: { ...wish().id, nonce: hash(200) } });
    expect(await reservePayment(ledger, other)).toEqual({
      outcome: "payer_limited",
      retryAfterMs: 1_000,
      isRunning: false,
    });
  });

  it("include unfinished runs of every process, so that a burst is limited like a sequence", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, index) => reservePayment(index % 2 ? one : two, wish())),
    );
    const tokens = results.flatMap((each) => (each.outcome === "reserved" ? [each.token] : []));
    expect(tokens).toHaveLength(3);
    expect(results.filter(({ outcome }) => outcome === "payer_limited")).toHaveLength(17);
    expect(await reservePayment(one, wish())).toEqual({
      outcome: "payer_limited",
      retryAfterMs: 1_000,
      isRunning: true,
    });
    const [answered = "", left = "", third = ""] = tokens;
    await enqueuePayment(two, { token: answered, payer, order });
    expect(await reservePayment(two, wish())).toMatchObject({ outcome: "reserved" });
    for (const token of [left, third]) {
      await releasePayment(one, { token, payer, countsAgainstPayer: true });
    }
    expect(await reservePayment(one, wish())).toMatchObject({ isRunning: true });
  });

  it("are unlimited for orders, since no handler runs first", async () => {
    const ledger = await join("one");
    for (let count = 0; count < 5; count += 1) await queue(ledger);
    expect(await reservePayment(ledger, wish({ order }))).toMatchObject({ outcome: "reserved" });
  });

  it("are allowed for half as many runs as were paid at the same price or more in the same time", async () => {
    const ledger = await join("one");
    const ids: string[] = [];
    for (let count = 0; count < 8; count += 1) ids.push(await queue(ledger));
    const lease = await takeLease(ledger);
    expect(await storeTransaction(ledger, lease, transaction(0, ids))).toBe("stored");
    await recordOutcomes(ledger, [{ confirmed: { ids, inclusion } }]);
    const runFree = async (changes = {}) => {
      const reserved = await reservePayment(ledger, wish(changes));
      if (reserved.outcome !== "reserved") return reserved.outcome;
      await releasePayment(ledger, { token: reserved.token, payer, countsAgainstPayer: true });
      return "free";
    };
    const outcomes: string[] = [];
    for (let count = 0; count < 3; count += 1) outcomes.push(await runFree());
    expect(await runFree({ value: 11n })).toBe("payer_limited");
    expect(await runFree({ id: authorization({ asset: `0x${"ab".repeat(20)}` }) })).toBe(
      "payer_limited",
    );
    for (let count = 0; count < 2; count += 1) outcomes.push(await runFree());
    expect(outcomes).toEqual(["free", "free", "free", "free", "payer_limited"]);
  });

  it("count once per payment at any process, and once with the released token", async () => {
    const two = await join("two");
    const wanted = wish();
    const second = await reservePayment(two, wanted);
    if (second.outcome !== "reserved") throw new Error(second.outcome);
    const counted = { payer, countsAgainstPayer: false, hasRun: true };
    await releasePayment(two, { token: second.token, ...counted });
    const third = await reservePayment(two, wanted);
    if (third.outcome !== "reserved") throw new Error(third.outcome);
    await enqueuePayment(two, { token: third.token, payer, order });
    expect(await getPayments(two, [third.paymentId])).toMatchObject([{ state: "queued", runs: 2 }]);
    await releasePayment(two, { token: third.token, ...counted });
    await releasePayment(two, { token: third.token, ...counted });
    const resumed = await reservePayment(two, wanted);
    expect(resumed).toMatchObject({ outcome: "resumed", payment: { runs: 2 }, mayRun: false });
  });

  it("use up an unpaid payment after two of them", async () => {
    const ledger = await join("one");
    const wanted = wish();
    for (const run of [1, 2]) {
      const reserved = await reservePayment(ledger, wanted);
      if (reserved.outcome !== "reserved") throw new Error(`${run}: ${reserved.outcome}`);
      const { token } = reserved;
      await releasePayment(ledger, { token, payer, countsAgainstPayer: false, hasRun: true });
    }
    expect(await reservePayment(ledger, wanted)).toEqual({ outcome: "used_up" });
    expect(await reservePayment(ledger, { ...wanted, order })).toMatchObject({
      outcome: "reserved",
    });
  });

  it("exclude a run whose payment was not sent in time", async () => {
    const ledger = await join("one");
    for (const run of [1, 2, 3]) {
      const id = { ...wish().id, nonce: hash(300 + run) };
      const reserved = await reservePayment(ledger, wish({ order, id, validBefore: 100n }));
      if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
      expect(await expire(ledger, 100n)).toMatchObject([{ state: "failed" }]);
      const { token } = reserved;
      await releasePayment(ledger, { token, payer, countsAgainstPayer: "if_failed" });
    }
    expect(await reservePayment(ledger, wish())).toMatchObject({ outcome: "reserved" });
  });
});
