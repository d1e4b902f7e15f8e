import type { AuthorizationId } from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { ledgerLater } from "../../testing/ledger-later.ts";
import {
  authorization,
  inclusion,
  network,
  order,
  payer,
  queue,
  stateOf,
  submit,
  wish,
} from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { deliverPayment } from "../payments/deliver-payments.ts";
import { enqueuePayment } from "../payments/enqueue-payments.ts";
import { recordOutcomes } from "../payments/record-outcomes.ts";
import { releasePayment } from "../payments/release-payment.ts";
import { reservePayment } from "../payments/reserve-payments.ts";
import { undoBlocks } from "../transactions/undo-blocks.ts";
import { releaseAbandoned, sendHeartbeat } from "./processes.ts";
import { isReservationHeld } from "./reservation-held.ts";

/** A ledger whose database's clock was set, and its process's own was not. */
function databaseAhead(ledger: LedgerContext, ms: number): LedgerContext {
  return { ...ledgerLater(ledger, ms), now: ledger.now };
}

describe.each(engines)("maintenance after a dead process, on %s", (engine) => {
  const { join, silence, wait } = ledgerForEachTest(engine);

  /** A confirmed payment without a key, whose process was frozen with its answer in its hands. */
  async function freezeBeforeAnswer() {
    const [one, two] = [await join("one"), await join("two")];
    const wanted = wish();
    const held = await reservePayment(one, wanted);
    if (held.outcome !== "reserved") throw new Error(held.outcome);
    await enqueuePayment(one, { token: held.token, payer, order });
    await recordOutcomes(one, [{ confirmed: { ids: [held.paymentId], inclusion } }]);
    await silence("one");
    wait(10_000);
    return { one, two, wanted, reservation: { id: wanted.id, token: held.token } };
  }

  it("leaves it no answer that another process has taken up meanwhile", async () => {
    const { one, two, wanted, reservation } = await freezeBeforeAnswer();
    expect(await reservePayment(two, wanted)).toMatchObject({ outcome: "resumed" });
    expect(await isReservationHeld(one, reservation)).toBe(false);
  });

  it("asks the ledger nothing about a reservation since which its heart has beaten in time", async () => {
    const one = await join("one");
    wait(1);
    const wanted = wish();
    const held = await reservePayment(one, wanted);
    if (held.outcome !== "reserved") throw new Error(held.outcome);
    wait(4_000);
    await sendHeartbeat(one);
    wait(4_000);
    const write = () => Promise.reject(new Error("A statement"));
    const reservation = { id: wanted.id, token: held.token };
    expect(await isReservationHeld({ ...one, write }, reservation)).toBe(true);
  });

  it("looks for all reservations of one moment in one transaction", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const [lost, ...others] = [wish(), wish(), wish()];
    const reservations: { id: AuthorizationId; token: string }[] = [];
    for (const wanted of [lost, ...others]) {
      const reserved = await reservePayment(one, wanted);
      if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
      reservations.push({ id: wanted.id, token: reserved.token });
    }
    await silence("one");
    expect(await reservePayment(two, lost)).toMatchObject({ outcome: "reserved" });
    wait(6_000);
    let transactions = 0;
    const write: typeof one.write = (work, options) => {
      transactions += 1;
      return one.write(work, options);
    };
    const ledger = { ...one, write };
    const held = await Promise.all(reservations.map((each) => isReservationHeld(ledger, each)));
    expect(held).toEqual([false, true, true]);
    expect(transactions).toBe(1);
  });

  it("leaves it no such answer once its heart beats again, whatever renewed its heartbeat first", async () => {
    const { one, two, wanted, reservation } = await freezeBeforeAnswer();
    expect(await reservePayment(two, wanted)).toMatchObject({ outcome: "resumed" });
    await reservePayment(one, wish());
    await sendHeartbeat(one);
    await sendHeartbeat(one);
    expect(await isReservationHeld(one, reservation)).toBe(false);
  });

  it("leaves it an answer that no other process has taken up, and none takes it then", async () => {
    const { one, two, wanted, reservation } = await freezeBeforeAnswer();
    expect(await isReservationHeld(one, reservation)).toBe(true);
    expect(await reservePayment(two, wanted)).toMatchObject({ outcome: "in_use" });
  });

  it("leaves an engine that was started anew no answer of the former one, which others may take up", async () => {
    const [former, next] = [await join("former"), await join("next")];
    const wanted = wish();
    const held = await reservePayment(former, wanted);
    if (held.outcome !== "reserved") throw new Error(held.outcome);
    await enqueuePayment(former, { token: held.token, payer, order });
    await recordOutcomes(former, [{ confirmed: { ids: [held.paymentId], inclusion } }]);
    await silence("former");
    next.heartbeat.lapsedAt = next.now();
    const reservation = { id: wanted.id, token: held.token };
    expect(await isReservationHeld(next, reservation)).toBe(false);
    expect(await reservePayment(next, wanted)).toMatchObject({ outcome: "resumed" });
  });

  it("lets no token of it queue a payment elsewhere, as a restored ledger may have it", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const held = await reservePayment(one, wish());
    if (held.outcome !== "reserved") throw new Error(held.outcome);
    await silence("one");
    expect(await enqueuePayment(two, { token: held.token, payer, order })).toBeUndefined();
    expect(await stateOf(two, held.paymentId)).toBe("reserved");
  });

  it("lets it queue its own payment, awake again, where no other process has taken that", async () => {
    const one = await join("one");
    const held = await reservePayment(one, wish());
    if (held.outcome !== "reserved") throw new Error(held.outcome);
    await silence("one");
    const queued = await enqueuePayment(one, { token: held.token, payer, order });
    expect(queued).toMatchObject({ id: held.paymentId });
  });

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

  it("keeps what no process holds, also while no heartbeat is fresh", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const balance = { amount: 1_000n, blockNumber: 3n };
    // Its caller was answered "pending".
    const pending = await reservePayment(one, wish({ order, balance }));
    if (pending.outcome !== "reserved") throw new Error(pending.outcome);
    await releasePayment(one, { token: pending.token, payer, countsAgainstPayer: false });
    // Delivered, executed by another sender, and its block has left the chain.
    const paid = await reservePayment(one, wish({ order, balance }));
    if (paid.outcome !== "reserved") throw new Error(paid.outcome);
    await recordOutcomes(one, [{ confirmed: { ids: [paid.paymentId], inclusion } }]);
    await deliverPayment(one, paid.token);
    await undoBlocks(one, {
      network,
      blocks: [{ number: inclusion.blockNumber, hash: inclusion.blockHash }],
    });
    await silence("one");
    await releaseAbandoned(two);
    for (const { paymentId } of [pending, paid]) {
      expect(await stateOf(two, paymentId)).toBe("queued");
    }
    await silence("two");
    await releaseAbandoned(two);
    for (const { paymentId } of [pending, paid]) {
      expect(await stateOf(two, paymentId)).toBe("queued");
    }
  });

  it("releases nothing while its own heartbeat is old, too", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const running = await reservePayment(one, wish());
    if (running.outcome !== "reserved") throw new Error(running.outcome);
    await silence("one");
    await silence("two");
    expect(await releaseAbandoned(two)).toEqual({ reserved: 0, queued: [] });
    expect(await stateOf(two, running.paymentId)).toBe("reserved");
    await sendHeartbeat(two);
    expect(await releaseAbandoned(two)).toEqual({ reserved: 0, queued: [] });
    wait(30_000);
    expect(await releaseAbandoned(two)).toEqual({ reserved: 1, queued: [] });
  });

  it.each([
    ["a heartbeat", sendHeartbeat],
    ["a reservation", (ledger: LedgerContext) => reservePayment(ledger, wish())],
  ] as const)(
    "leaves the living alone where the database's clock is put forward before %s, and put back",
    async (_, write) => {
      const [one, two] = [await join("one"), await join("two")];
      const wanted = wish();
      const held = await reservePayment(one, wanted);
      if (held.outcome !== "reserved") throw new Error(held.outcome);
      const hour = 3_600_000;
      const ahead = databaseAhead(two, hour);
      await write(ahead);
      expect(await reservePayment(ahead, wanted)).toMatchObject({ outcome: "in_use" });
      for (let beat = 0; beat < 2; beat += 1) {
        await sendHeartbeat(ahead);
        expect(await releaseAbandoned(ahead)).toEqual({ reserved: 0, queued: [] });
      }
      await sendHeartbeat(databaseAhead(one, hour));
      for (const ledger of [two, one, two, one]) await sendHeartbeat(ledger);
      expect(await reservePayment(two, wanted)).toMatchObject({ outcome: "in_use" });
      const queued = await enqueuePayment(one, { token: held.token, payer, order });
      expect(queued).toMatchObject({ id: held.paymentId });
    },
  );

  it("frees what a dead process held in a future that the database's clock was put back from", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const [wanted, other] = [wish(), wish()];
    await reservePayment(one, wanted);
    await reservePayment(one, other);
    for (const ledger of [one, two]) await sendHeartbeat(databaseAhead(ledger, 3_600_000));
    // The other one may live: its next heartbeat would show that.
    expect(await reservePayment(two, wanted)).toMatchObject({ outcome: "in_use" });
    await sendHeartbeat(two);
    expect(await reservePayment(two, wanted)).toMatchObject({ outcome: "in_use" });
    expect(await releaseAbandoned(two)).toEqual({ reserved: 0, queued: [] });
    wait(30_000);
    await sendHeartbeat(two);
    expect(await reservePayment(two, wanted)).toMatchObject({ outcome: "reserved" });
    expect(await releaseAbandoned(two)).toEqual({ reserved: 1, queued: [] });
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
