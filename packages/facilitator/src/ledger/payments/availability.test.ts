import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import {
  authorization,
  inclusion,
  order,
  payer,
  submit,
  wish,
} from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import { lookUpPayment } from "../queries/look-up-payments.ts";
import { deliverPayment } from "./deliver-payments.ts";
import { enqueuePayment } from "./enqueue-payments.ts";
import { dropExpiredAnswers } from "./keep-answers.ts";
import { recordOutcomes } from "./record-outcomes.ts";
import { releasePayment } from "./release-payment.ts";
import { reservePayment } from "./reserve-payments.ts";

describe.each(engines)("a payment that is presented again on %s", (engine) => {
  const { join, silence, wait } = ledgerForEachTest(engine);

  it("resumes for the same request once the process of its submission is dead", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const id = authorization();
    const paymentId = await submit(one, { id });
    const same = wish({ id });
    expect(await lookUpPayment(two, same)).toMatchObject({ availability: "in_use" });
    await silence("one");
    expect(await lookUpPayment(two, same)).toMatchObject({ availability: "resumable" });
    expect(await lookUpPayment(two, { ...same, fingerprint: "GET /b" })).toMatchObject({
      availability: "in_use",
    });
    expect(await reservePayment(two, same)).toMatchObject({
      outcome: "resumed",
      payment: { id: paymentId },
    });
    expect(await reservePayment(two, same)).toMatchObject({ outcome: "in_use" });
  });

  it("resumes with the key of its first request only", async () => {
    const ledger = await join("one");
    const id = authorization();
    const first = await reservePayment(ledger, wish({ id, order, keyHash: "key" }));
    if (first.outcome !== "reserved") throw new Error(first.outcome);
    await releasePayment(ledger, { token: first.token, payer, countsAgainstPayer: false });
    expect(await lookUpPayment(ledger, wish({ id }))).toMatchObject({ availability: "in_use" });
    expect(await lookUpPayment(ledger, wish({ id, keyHash: "other" }))).toMatchObject({
      availability: "in_use",
    });
    expect(await lookUpPayment(ledger, wish({ id, keyHash: "key" }))).toMatchObject({
      availability: "resumable",
    });
  });

  it("is refused with a key of another payment of its payer", async () => {
    const ledger = await join("one");
    await reservePayment(ledger, wish({ keyHash: "key" }));
    expect(await reservePayment(ledger, wish({ keyHash: "key" }))).toEqual({
      outcome: "key_conflict",
    });
    const elsewhere = authorization({ payer: `0x${"ef".repeat(20)}` });
    expect(await reservePayment(ledger, wish({ id: elsewhere, keyHash: "key" }))).toMatchObject({
      outcome: "reserved",
    });
  });

  it("returns its kept answer to its key alone, also after delivery, until the answer expires", async () => {
    const ledger = await join("one");
    const wanted = wish({ keyHash: "key" });
    const reserved = await reservePayment(ledger, wanted);
    if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
    const answer = { keyHash: "key", sealed: Uint8Array.of(1, 2, 3) };
    await enqueuePayment(ledger, { token: reserved.token, payer, order, answer });
    await recordOutcomes(ledger, [{ confirmed: { ids: [reserved.paymentId], inclusion } }]);
    await deliverPayment(ledger, reserved.token);
    const found = await lookUpPayment(ledger, wanted);
    expect(found.availability).toBe("delivered");
    expect([...(found.answer?.sealed ?? [])]).toEqual([1, 2, 3]);
    const { keyHash: _, ...keyless } = wanted;
    expect(await lookUpPayment(ledger, keyless)).toMatchObject({
      availability: "delivered",
      answer: undefined,
    });
    expect(await lookUpPayment(ledger, { ...wanted, fingerprint: "GET /b" })).toMatchObject({
      availability: "key_conflict",
    });
    wait(60_001);
    expect(await lookUpPayment(ledger, wanted)).toMatchObject({
      availability: "delivered",
      answer: undefined,
    });
    await dropExpiredAnswers(ledger);
  });
});
