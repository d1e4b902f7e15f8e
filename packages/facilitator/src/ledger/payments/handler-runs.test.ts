import { DatabaseError } from "@coinslot/storage";
import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import {
  hash,
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
import { countRun } from "./count-run.ts";
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
    "use up an unpaid payment after two, with a release by another process: %s",
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

  it("count nothing for processes that died before a handler could begin", async () => {
    const wanted = wish({ order });
    const first = await takeAndDie(wanted, "one", false);
    if (first.outcome !== "reserved") throw new Error(first.outcome);
    const other = await join("other");
    const lease = await takeLease(other);
    expect(await storeTransaction(other, lease, transaction(0, [first.paymentId]))).toBe("stored");
    await other.leases.release(lease);
    for (const life of ["two", "three", "four", "five", "six"]) {
      expect(await takeAndDie(wanted, life, true)).toMatchObject({ outcome: "resumed" });
    }
    await recordOutcomes(other, [{ confirmed: { ids: [first.paymentId], inclusion } }]);
    expect(await reservePayment(other, wanted)).toMatchObject({
      outcome: "resumed",
      payment: { runs: 0 },
      mayRun: true,
    });
  });

  it("stay at zero for a payment that is settled before its handler runs", async () => {
    const wanted = wish();
    for (const life of ["one", "two", "three"]) {
      const ledger = await join(life);
      const result = await reservePayment(ledger, wanted);
      if (result.outcome !== "reserved") throw new Error(result.outcome);
      await enqueuePayment(ledger, { token: result.token, payer, order, hasRun: false });
      await silence(life);
      await releaseAbandoned(await join("other"));
    }
    const ledger = await join("other");
    const [ours, another] = await Promise.all(
      [wanted, wish({ id: { ...wanted.id, nonce: hash(77) } })].map(async (request) => {
        const result = await reservePayment(ledger, request);
        if (result.outcome !== "reserved") throw new Error(result.outcome);
        return result;
      }),
    );
    await Promise.all([
      enqueuePayment(ledger, { token: ours?.token ?? "", payer, order, hasRun: false }),
      enqueuePayment(ledger, { token: another?.token ?? "", payer, order }),
    ]);
    expect(await getPayments(ledger, [ours?.paymentId ?? ""])).toMatchObject([{ runs: 0 }]);
    expect(await getPayments(ledger, [another?.paymentId ?? ""])).toMatchObject([{ runs: 1 }]);
  });

  it("stop at four for a settled payment, if every process dies during its run", async () => {
    const wanted = wish({ order });
    const first = await takeAndDie(wanted, "one", false);
    if (first.outcome !== "reserved") throw new Error(first.outcome);
    await confirm(await join("other"), first.paymentId);
    const runs: (boolean | string)[] = [];
    for (const life of ["two", "three", "four", "five", "six"]) {
      const ledger = await join(life);
      const taken = await reservePayment(ledger, wanted);
      if (taken.outcome !== "resumed") throw new Error(taken.outcome);
      runs.push(taken.mayRun);
      if (taken.mayRun) expect(await countRun(ledger, taken.token)).toBe(true);
      await silence(life);
    }
    expect(runs).toEqual([true, true, true, true, false]);
  });

  it("stop at two for a settled payment in a living process", async () => {
    const wanted = wish({ order });
    const first = await takeAndDie(wanted, "one", false);
    if (first.outcome !== "reserved") throw new Error(first.outcome);
    const ledger = await join("other");
    await confirm(ledger, first.paymentId);
    for (const run of [1, 2]) {
      const taken = await reservePayment(ledger, wanted);
      if (taken.outcome !== "resumed") throw new Error(`${run}: ${taken.outcome}`);
      expect(taken.mayRun).toBe(true);
      expect(await countRun(ledger, taken.token)).toBe(true);
      const { token } = taken;
      await releasePayment(ledger, { token, payer, countsAgainstPayer: false, hasRun: true });
    }
    expect(await reservePayment(ledger, wanted)).toMatchObject({
      outcome: "resumed",
      mayRun: false,
    });
  });

  it("never begin in a frozen process whose payment another one has taken up", async () => {
    const wanted = wish({ order });
    const one = await join("one");
    const first = await reservePayment(one, wanted);
    if (first.outcome !== "reserved") throw new Error(first.outcome);
    const two = await join("two");
    await confirm(two, first.paymentId);
    await silence("one");
    expect((await reservePayment(two, wanted)).outcome).toBe("resumed");
    expect(await countRun(one, first.token)).toBe(false);
    expect(await getPayments(two, [first.paymentId])).toMatchObject([{ runs: 0 }]);
  });

  it("are counted, and do not begin, where the answer to the commit of their count is lost", async () => {
    const wanted = wish({ order });
    const first = await takeAndDie(wanted, "one", false);
    if (first.outcome !== "reserved") throw new Error(first.outcome);
    const ledger = await join("other");
    await confirm(ledger, first.paymentId);
    const taken = await reservePayment(ledger, wanted);
    if (taken.outcome !== "resumed") throw new Error(taken.outcome);
    const losing: LedgerContext = {
      ...ledger,
      async write(work, options) {
        await ledger.write(work, options);
        throw new DatabaseError("connection-lost", "The answer to the commit was lost");
      },
    };
    await expect(countRun(losing, taken.token)).rejects.toMatchObject({ kind: "connection-lost" });
    expect(await getPayments(ledger, [first.paymentId])).toMatchObject([{ runs: 1 }]);
    const { token } = taken;
    await releasePayment(ledger, { token, payer, countsAgainstPayer: false });
    expect(await reservePayment(ledger, wanted)).toMatchObject({
      outcome: "resumed",
      payment: { runs: 1 },
      mayRun: true,
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
