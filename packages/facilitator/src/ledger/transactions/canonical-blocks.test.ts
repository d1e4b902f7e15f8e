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

describe.each(engines)("a payment that is brought again on %s", (engine) => {
  const { join, silence, wait } = ledgerForEachTest(engine);

  it("resumes a submitted payment for the same request, when nobody runs for it", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const id = authorization();
    const paymentId = await submit(one, { id });
    const same = wish({ id });
    expect(await two.lookUp(same)).toMatchObject({ standing: "in_use" });
    await silence("one");
    expect(await two.lookUp(same)).toMatchObject({ standing: "resumable" });
    expect(await two.lookUp({ ...same, fingerprint: "GET /b" })).toMatchObject({
      standing: "in_use",
    });
    expect(await two.reserve(same)).toMatchObject({
      outcome: "resumed",
      payment: { id: paymentId },
    });
    expect(await two.reserve(same)).toMatchObject({ outcome: "in_use" });
  });

  it("resumes a payment whose buyer sent a key with that key only", async () => {
    const ledger = await join("one");
    const id = authorization();
    const first = await ledger.reserve(wish({ id, order, keyHash: "key" }));
    if (first.outcome !== "reserved") throw new Error(first.outcome);
    await ledger.release({ token: first.token, payer, countsAgainstPayer: false });
    expect(await ledger.lookUp(wish({ id }))).toMatchObject({ standing: "in_use" });
    expect(await ledger.lookUp(wish({ id, keyHash: "other" }))).toMatchObject({
      standing: "in_use",
    });
    expect(await ledger.lookUp(wish({ id, keyHash: "key" }))).toMatchObject({
      standing: "resumable",
    });
  });

  it("refuses a key that belongs to another payment of the payer", async () => {
    const ledger = await join("one");
    await ledger.reserve(wish({ keyHash: "key" }));
    expect(await ledger.reserve(wish({ keyHash: "key" }))).toEqual({ outcome: "key_conflict" });
    const elsewhere = authorization({ payer: `0x${"ef".repeat(20)}` });
    expect(await ledger.reserve(wish({ id: elsewhere, keyHash: "key" }))).toMatchObject({
      outcome: "reserved",
    });
  });

  it("gives a kept answer to its key alone, also after delivery, until its time is over", async () => {
    const ledger = await join("one");
    const wanted = wish({ keyHash: "key" });
    const reserved = await ledger.reserve(wanted);
    if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
    const answer = { keyHash: "key", sealed: Uint8Array.of(1, 2, 3) };
    await ledger.enqueue({ token: reserved.token, payer, order, answer });
    await ledger.recordOutcomes([{ confirmed: { ids: [reserved.paymentId], inclusion } }]);
    await ledger.deliver(reserved.token);
    const found = await ledger.lookUp(wanted);
    expect(found.standing).toBe("delivered");
    expect([...(found.answer?.sealed ?? [])]).toEqual([1, 2, 3]);
    const { keyHash: _, ...keyless } = wanted;
    expect(await ledger.lookUp(keyless)).toMatchObject({
      standing: "delivered",
      answer: undefined,
    });
    expect(await ledger.lookUp({ ...wanted, fingerprint: "GET /b" })).toMatchObject({
      standing: "key_conflict",
    });
    wait(60_001);
    expect(await ledger.lookUp(wanted)).toMatchObject({ standing: "delivered", answer: undefined });
    await ledger.dropExpiredAnswers();
  });
});
