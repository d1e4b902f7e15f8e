import { createAutoResetEvent } from "@coinslot/concurrency";
import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import {
  expire,
  inclusion,
  network,
  order,
  payer,
  relayer,
  stateOf,
  submit,
  wish,
} from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { closePayments } from "../maintenance/close-payments.ts";
import { releaseAbandoned } from "../maintenance/processes.ts";
import type { ReserveWish } from "../payments/reserve-request.ts";
import { findFailed } from "../queries/find-watched.ts";
import { getPayments } from "../queries/list-payments.ts";
import { deliverPayment } from "./deliver-payments.ts";
import { enqueuePayment } from "./enqueue-payments.ts";
import { recordOutcomes } from "./record-outcomes.ts";
import { releasePayment } from "./release-payment.ts";
import { reservePayment } from "./reserve-payments.ts";

describe.each(engines)("a failed payment that is reserved again on %s", (engine) => {
  const { join, silence } = ledgerForEachTest(engine);

  const reason = "invalid_exact_evm_transaction_failed";

  /** Submitted, failed, and brought again. */
  async function failAndReserve(ledger: LedgerContext, change: Partial<ReserveWish> = {}) {
    const wanted = wish({ balance: { amount: 10n, blockNumber: 4n }, ...change });
    const id = await submit(ledger, wanted);
    await recordOutcomes(ledger, [{ failed: [{ ids: [id], reason, inclusion }] }]);
    const again = await reservePayment(ledger, wanted);
    if (again.outcome !== "reserved") throw new Error(again.outcome);
    const [payment] = await getPayments(ledger, [id]);
    expect(payment).toMatchObject({ state: "reserved", attempts: again.attempts });
    expect(payment?.unusedAtBlock).toBe(again.unusedAtBlock);
    expect(again.attempts).toBe(1);
    return { id, token: again.token };
  }

  async function watched(ledger: LedgerContext) {
    const found = await findFailed(ledger, { network, limit: 10 });
    return found.map(({ payment, order: { signature } }) => ({ id: payment.id, signature }));
  }

  async function ledgerState(ledger: LedgerContext, id: string) {
    const [payment] = await getPayments(ledger, [id]);
    return { state: payment?.state, reason: payment?.reason };
  }

  it("is watched again once it is released", async () => {
    const ledger = await join("one");
    const { id, token } = await failAndReserve(ledger);
    expect(await watched(ledger)).toEqual([]);
    await releasePayment(ledger, { token, payer, countsAgainstPayer: false });
    expect(await getPayments(ledger, [id])).toMatchObject([
      { state: "failed", reason, attempts: 1 },
    ]);
    expect(await watched(ledger)).toEqual([{ id, signature: order.signature }]);
    expect(await recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion } }])).toMatchObject([
      { id, state: "confirmed", inclusion },
    ]);
  });

  it.each(["reserved", "queued"])("is watched again when its process dies: %s", async (state) => {
    const [one, two] = [await join("one"), await join("two")];
    const { id, token } = await failAndReserve(one);
    const signature = `0x${"22".repeat(65)}` as const;
    if (state === "queued")
      await enqueuePayment(one, { token, payer, order: { ...order, signature } });
    await silence("one");
    await releaseAbandoned(two);
    expect(await ledgerState(two, id)).toEqual({ state: "failed", reason });
    const known = state === "queued" ? signature : order.signature;
    expect(await watched(two)).toEqual([{ id, signature: known }]);
  });

  it("is watched again when its time passes in the queue", async () => {
    const ledger = await join("one");
    const { id, token } = await failAndReserve(ledger, { validBefore: 100n });
    await enqueuePayment(ledger, { token, payer, order });
    await expire(ledger, 100n);
    expect(await stateOf(ledger, id)).toBe("failed");
    expect(await watched(ledger)).toHaveLength(1);
  });

  it.each<Partial<ReserveWish>>([{ payTo: relayer }, { value: 9n }, { validBefore: 99n }])(
    "does not yield to another authorization with its nonce: %o",
    async (change) => {
      const ledger = await join("one");
      const wanted = wish();
      const id = await submit(ledger, wanted);
      await recordOutcomes(ledger, [{ failed: [{ ids: [id], reason, inclusion }] }]);
      const other = { ...wanted, ...change };
      expect(await reservePayment(ledger, other)).toMatchObject({ outcome: "in_use" });
      await closePayments(ledger, [id]);
      expect(await reservePayment(ledger, other)).toMatchObject({ outcome: "reserved" });
    },
  );

  it("loses its delivery mark with the new reservation", async () => {
    const ledger = await join("one");
    const request = wish({ order });
    const first = await reservePayment(ledger, request);
    if (first.outcome !== "reserved") throw new Error(first.outcome);
    await deliverPayment(ledger, first.token);
    await recordOutcomes(ledger, [{ failed: [{ ids: [first.paymentId], reason }] }]);
    const again = await reservePayment(ledger, request);
    expect(again.outcome).toBe("reserved");
    expect((await getPayments(ledger, [first.paymentId]))[0]?.deliveredAt).toBeUndefined();
  });
});

describe("a dead process's reservation that is taken over while its owner wakes up", () => {
  const { join, silence, read } = ledgerForEachTest("postgres");

  it("is reserved again, or queued by its owner, never both", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const wanted = wish({ balance: { amount: 1_000n, blockNumber: 3n } });
    const first = await reservePayment(one, wanted);
    if (first.outcome !== "reserved") throw new Error(first.outcome);
    await silence("one");
    // Another reservation of a payer with code holds the network's budget.
    const locked = createAutoResetEvent();
    const free = createAutoResetEvent();
    await read(sql`insert into code_budgets (network) values (${network})`);
    const holding = one.write(async (transaction) => {
      await sql`select * from code_budgets for update`.execute(transaction);
      locked.set();
      await free.wait(60_000);
    });
    await locked.wait(60_000);
    const taking = reservePayment(two, { ...wanted, gasAtRisk: 100_000n });
    const waiting = (query: string) =>
      read(
        sql`select 1 from pg_stat_activity where wait_event_type = 'Lock' and query ilike ${query}`,
      );
    await expect.poll(() => waiting("%code_budgets%")).not.toEqual([]);
    const queued = await enqueuePayment(one, { token: first.token, payer, order });
    expect(queued).toBeDefined();
    free.set();
    await holding;
    // Decided anew: the owner's heartbeat is old, but its payment is queued.
    expect(await taking).toMatchObject({ outcome: "resumed", payment: { id: first.paymentId } });
    expect(await stateOf(two, first.paymentId)).toBe("queued");
    expect(await read(sql`select payment_id from orders`)).toHaveLength(1);
  });
});
