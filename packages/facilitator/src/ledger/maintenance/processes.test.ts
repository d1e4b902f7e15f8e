import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import {
  authorization,
  order,
  payer,
  queue,
  stateOf,
  submit,
  wish,
} from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import { enqueuePayment } from "../payments/enqueue-payments.ts";
import { releasePayment } from "../payments/release-payment.ts";
import { reservePayment } from "../payments/reserve-payments.ts";
import { releaseAbandoned } from "./processes.ts";

describe.each(engines)("maintenance after a dead process, on %s", (engine) => {
  const { join, silence } = ledgerForEachTest(engine);

  it("frees its reservations, and invalidates their tokens", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const wanted = wish();
    const first = await reservePayment(one, wanted);
    if (first.outcome !== "reserved") throw new Error(first.outcome);
    expect(await reservePayment(two, wanted)).toMatchObject({ outcome: "in_use" });
    await silence("one");
    const second = await reservePayment(two, wanted);
    expect(second).toMatchObject({ outcome: "reserved", paymentId: first.paymentId });
    expect(await enqueuePayment(one, { token: first.token, payer, order })).toBeUndefined();
    await releasePayment(one, { token: first.token, payer, countsAgainstPayer: true });
    expect(await stateOf(two, first.paymentId)).toBe("reserved");
  });

  it("lets a frozen process reserve before its next heartbeat", async () => {
    const one = await join("one");
    const two = await join("two");
    for (const { isForgotten } of [{ isForgotten: false }, { isForgotten: true }]) {
      await silence("one");
      if (isForgotten) await releaseAbandoned(two);
      const id = authorization();
      expect(await reservePayment(one, wish({ id }))).toMatchObject({ outcome: "reserved" });
      expect(await reservePayment(two, wish({ id }))).toMatchObject({ outcome: "in_use" });
      expect(await releaseAbandoned(two)).toEqual({ reserved: 0, queued: [] });
    }
  });

  it("releases its queued payments, except with a kept answer or a transaction", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const queued = await queue(one);
    const carried = await submit(one);
    const reserved = await reservePayment(one, wish({ keyHash: "key" }));
    if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
    const answer = { keyHash: "key", sealed: Uint8Array.of(1, 2, 3) };
    await enqueuePayment(one, { token: reserved.token, payer, order, answer });
    await silence("one");
    expect(await releaseAbandoned(two)).toMatchObject({
      reserved: 0,
      queued: [{ id: queued, state: "released" }],
    });
    expect(await stateOf(two, queued)).toBe("released");
    expect(await stateOf(two, carried)).toBe("submitted");
    expect(await stateOf(two, reserved.paymentId)).toBe("queued");
  });
});
