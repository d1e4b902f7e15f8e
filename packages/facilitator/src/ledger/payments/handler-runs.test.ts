import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import {
  inclusion,
  order,
  payer,
  takeLease,
  transaction,
  wish,
} from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { releaseAbandoned } from "../maintenance/processes.ts";
import type { ReserveWish } from "../payments/reserve-request.ts";
import { getPayments } from "../queries/list-payments.ts";
import { storeTransaction } from "../transactions/store-transaction.ts";
import { enqueuePayment } from "./enqueue-payments.ts";
import { recordOutcomes } from "./record-outcomes.ts";
import { releasePayment } from "./release-payment.ts";
import { reservePayment } from "./reserve-payments.ts";

describe.each(engines)("handler runs of a dead process, on %s", (engine) => {
  const { join, silence } = ledgerForEachTest(engine);

  /**
   * Reserves a payment, and dies with it; `housekeeping`: another process notices before the
   * payment is presented again.
   */
  async function takeAndDie(wanted: ReserveWish, life: string, housekeeping: boolean) {
    const ledger = await join(life);
    const result = await reservePayment(ledger, wanted);
    await silence(life);
    if (housekeeping) await releaseAbandoned(await join("other"));
    return result;
  }

  async function confirm(ledger: LedgerContext, id: string): Promise<void> {
    const lease = await takeLease(ledger);
    expect(await storeTransaction(ledger, lease, transaction(0, [id]))).toBe("stored");
    await ledger.leases.release(lease);
    await recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion } }]);
  }

  it.each([true, false])(
    "end the use of an unpaid payment after two runs, released by others: %s",
    async (housekeeping) => {
      const wanted = wish();
      const outcomes: string[] = [];
      for (const life of ["one", "two", "three", "four"]) {
        outcomes.push((await takeAndDie(wanted, life, housekeeping)).outcome);
      }
      expect(outcomes).toEqual(["reserved", "reserved", "used_up", "used_up"]);
    },
  );

  it("count for a queued payment whose answer died with its process", async () => {
    const wanted = wish();
    const outcomes: string[] = [];
    for (const life of ["one", "two", "three"]) {
      const ledger = await join(life);
      const result = await reservePayment(ledger, wanted);
      outcomes.push(result.outcome);
      if (result.outcome === "reserved") {
        await enqueuePayment(ledger, { token: result.token, payer, order });
      }
      await silence(life);
      await releaseAbandoned(await join("other"));
    }
    expect(outcomes).toEqual(["reserved", "reserved", "used_up"]);
  });

  it("leave a settled payment two more runs at most, each after the death of the previous one", async () => {
    const wanted = wish({ order });
    const first = await takeAndDie(wanted, "one", false);
    if (first.outcome !== "reserved") throw new Error(first.outcome);
    await confirm(await join("other"), first.paymentId);
    const runs: (boolean | string)[] = [];
    for (const life of ["two", "three", "four", "five", "six"]) {
      const taken = await takeAndDie(wanted, life, true);
      runs.push(taken.outcome === "resumed" ? taken.mayRun : taken.outcome);
    }
    expect(runs).toEqual([true, true, true, false, false]);
  });

  it("leave a settled payment no run after two, the last of them in a living process", async () => {
    const wanted = wish({ order });
    const first = await takeAndDie(wanted, "one", false);
    if (first.outcome !== "reserved") throw new Error(first.outcome);
    const ledger = await join("other");
    await confirm(ledger, first.paymentId);
    const second = await reservePayment(ledger, wanted);
    if (second.outcome !== "resumed") throw new Error(second.outcome);
    expect(second.mayRun).toBe(true);
    await releasePayment(ledger, {
      token: second.token,
      payer,
      countsAgainstPayer: false,
      hasRun: true,
    });
    expect(await reservePayment(ledger, wanted)).toMatchObject({
      outcome: "resumed",
      mayRun: false,
    });
  });

  it("count once where a frozen process wakes up and ends its run too", async () => {
    const wanted = wish();
    const [one, two] = [await join("one"), await join("two")];
    const first = await reservePayment(one, wanted);
    if (first.outcome !== "reserved") throw new Error(first.outcome);
    await silence("one");
    const second = await reservePayment(two, wanted);
    expect(second.outcome).toBe("reserved");
    await releasePayment(one, {
      token: first.token,
      payer,
      countsAgainstPayer: false,
      hasRun: true,
    });
    expect(await getPayments(two, [first.paymentId])).toMatchObject([
      { state: "reserved", runs: 1 },
    ]);
  });
});
