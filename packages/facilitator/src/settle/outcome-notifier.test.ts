import { systemClock } from "@coinslot/chain";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { deliverPayment } from "../ledger/payments/deliver-payments.ts";
import { recordOutcomes } from "../ledger/payments/record-outcomes.ts";
import { reservePayment } from "../ledger/payments/reserve-payments.ts";
import type { ReserveWish } from "../ledger/payments/reserve-request.ts";
import { silentLogger } from "../logger.ts";
import { afterReads } from "../testing/after-reads.ts";
import { ledgerForEachTest } from "../testing/ledger-for-each-test.ts";
import { authorization, inclusion, order, wish } from "../testing/ledger-payments.ts";
import { engines } from "../testing/settling-devnet.ts";
import { createMetrics } from "./metrics.ts";
import { createOutcomeNotifier } from "./outcome-notifier.ts";

const never = 1_000_000;
const reason = "invalid_exact_evm_insufficient_balance";

/** A notifier that reads the ledger often, unless `pollMs` says otherwise. */
async function notifierOf(ledger: LedgerContext, { pollMs = 10 } = {}) {
  const notifier = await createOutcomeNotifier({
    ledger,
    clock: systemClock,
    logger: silentLogger,
    metrics: createMetrics(),
    emit: () => undefined,
    pollMs,
  });
  onTestFinished(() => notifier.stop());
  return notifier;
}

/** Queues a payment; of one that failed, this is the next reservation. */
async function queueFor(ledger: LedgerContext, changes: Partial<ReserveWish>) {
  const reserved = await reservePayment(ledger, wish({ order, ...changes }));
  if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
  return reserved;
}

const fail = (ledger: LedgerContext, id: string) =>
  recordOutcomes(ledger, [{ failed: [{ ids: [id], reason }] }]);

const confirm = (ledger: LedgerContext, id: string) =>
  recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion } }]);

describe.each(engines)("the wait for an outcome, on %s", (engine) => {
  const { join, silence } = ledgerForEachTest(engine);

  /** A payment that failed for one request, and was queued again for another. */
  async function queueTwice(ledger: LedgerContext) {
    const id = authorization();
    const first = await queueFor(ledger, { id, fingerprint: "GET /a" });
    await fail(ledger, first.paymentId);
    const second = await queueFor(ledger, { id, fingerprint: "GET /b" });
    expect(second.paymentId).toBe(first.paymentId);
    return { paymentId: first.paymentId, first: first.token, second: second.token };
  }

  it("ends without one, if the payment was confirmed for a later reservation", async () => {
    const ledger = await join("one");
    const { paymentId, first, second } = await queueTwice(ledger);
    await confirm(ledger, paymentId);
    const notifier = await notifierOf(ledger);
    const waits = [first, second, undefined].map((token) =>
      notifier.wait(paymentId, { token, timeoutMs: never }),
    );
    expect(await Promise.all(waits)).toMatchObject([
      undefined,
      { state: "confirmed" },
      { state: "confirmed" },
    ]);
  });

  it("ends without one, if the later reservation has delivered its answer", async () => {
    const ledger = await join("one");
    const { paymentId, first, second } = await queueTwice(ledger);
    await confirm(ledger, paymentId);
    await deliverPayment(ledger, second);
    const notifier = await notifierOf(ledger);
    expect(await notifier.wait(paymentId, { token: first, timeoutMs: never })).toBeUndefined();
  });

  it("ends without one by its time-out, if the reservation is another by then", async () => {
    const ledger = await join("one");
    const { paymentId, first, second } = await queueTwice(ledger);
    const notifier = await notifierOf(ledger, { pollMs: never });
    const wait = (token: string) => notifier.wait(paymentId, { token, timeoutMs: 10 });
    expect(await Promise.all([wait(first), wait(second)])).toMatchObject([
      undefined,
      { state: "queued" },
    ]);
    await confirm(ledger, paymentId);
    expect(await Promise.all([wait(first), wait(second)])).toMatchObject([
      undefined,
      { state: "confirmed" },
    ]);
  });

  it("ends with the outcome that this process has recorded for its own reservation", async () => {
    const ledger = await join("one");
    const { paymentId, first, second } = await queueTwice(ledger);
    const notifier = await notifierOf(ledger, { pollMs: never });
    const wait = (token: string) => notifier.wait(paymentId, { token, timeoutMs: never });
    const waits = [wait(first), wait(second)];
    notifier.publish(await confirm(ledger, paymentId));
    expect(await waits[1]).toMatchObject({ state: "confirmed" });
    await notifier.stop();
    expect(await waits[0]).toBeUndefined();
  });

  it("does not end by an outcome that was read before its reservation", async () => {
    const ledger = await join("one");
    const id = authorization();
    const { paymentId } = await queueFor(ledger, { id, fingerprint: "GET /a" });
    await fail(ledger, paymentId);
    let late: Promise<unknown> | undefined;
    let reads = 0;
    const notifier = await notifierOf(
      afterReads(ledger, async () => {
        reads += 1;
        if (reads > 1) return;
        const { token } = await queueFor(ledger, { id, fingerprint: "GET /b" });
        late = notifier.wait(paymentId, { token, timeoutMs: never });
      }),
    );
    notifier.follow(paymentId);
    await vi.waitFor(() => expect(late).toBeDefined(), 20_000);
    await confirm(ledger, paymentId);
    expect(await late).toMatchObject({ state: "confirmed" });
  });

  it("ends at the stop, also where it begins while the stop reads the ledger", async () => {
    const ledger = await join("one");
    const id = authorization();
    const { paymentId, token: first } = await queueFor(ledger, { id, fingerprint: "GET /a" });
    let late: Promise<unknown> | undefined;
    const notifier = await notifierOf(
      afterReads(ledger, async () => {
        if (late !== undefined) return;
        await fail(ledger, paymentId);
        const { token } = await queueFor(ledger, { id, fingerprint: "GET /b" });
        late = notifier.wait(paymentId, { token, timeoutMs: never });
      }),
      { pollMs: never },
    );
    const early = notifier.wait(paymentId, { token: first, timeoutMs: never });
    await notifier.stop();
    expect(await early).toMatchObject({ state: "queued" });
    expect(await late).toMatchObject({ state: "queued" });
  });

  it("ends at the stop, also where the ledger cannot be read any more", async () => {
    const ledger = await join("one");
    const { paymentId, token } = await queueFor(ledger, {});
    const notifier = await notifierOf(
      afterReads(ledger, () => Promise.reject(new Error("no such table: payments"))),
      { pollMs: never },
    );
    const wait = notifier.wait(paymentId, { token, timeoutMs: never });
    const [ended, stopped] = await Promise.allSettled([wait, notifier.stop()]);
    expect(ended).toMatchObject({ reason: { message: "no such table: payments" } });
    expect(stopped.status).toBe("fulfilled");
  });

  it("ends with the outcome for the request alone that has taken the payment up last", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const id = authorization();
    const { paymentId, token: first } = await queueFor(one, { id });
    await silence("one");
    const taken = await reservePayment(two, wish({ id, order }));
    if (taken.outcome !== "resumed") throw new Error(taken.outcome);
    await confirm(two, paymentId);
    const notifier = await notifierOf(one);
    const wait = (token: string) => notifier.wait(paymentId, { token, timeoutMs: never });
    expect(await Promise.all([wait(first), wait(taken.token)])).toMatchObject([
      undefined,
      { state: "confirmed" },
    ]);
  });
});
