import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import {
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
import type { Ledger, ReserveWish } from "../ledger.ts";

describe.each(engines)("a failed payment that is reserved again on %s", (engine) => {
  const { join, silence } = ledgerForEachTest(engine);

  const reason = "invalid_exact_evm_transaction_failed";

  /** Submitted, failed, and brought again. */
  async function failAndReserve(ledger: Ledger, change: Partial<ReserveWish> = {}) {
    const wanted = wish({ balance: { amount: 10n, blockNumber: 4n }, ...change });
    const id = await submit(ledger, wanted);
    await ledger.recordOutcomes([{ failed: [{ ids: [id], reason, inclusion }] }]);
    const again = await ledger.reserve(wanted);
    if (again.outcome !== "reserved") throw new Error(again.outcome);
    const [payment] = await ledger.get([id]);
    expect(payment).toMatchObject({ state: "reserved", carried: again.carried });
    expect(payment?.unusedAtBlock).toBe(again.unusedAtBlock);
    expect(again.carried).toBe(1);
    return { id, token: again.token };
  }

  async function watched(ledger: Ledger) {
    const found = await ledger.findFailed({ network, limit: 10 });
    return found.map(({ payment, order: { signature } }) => ({ id: payment.id, signature }));
  }

  async function ledgerState(ledger: Ledger, id: string) {
    const [payment] = await ledger.get([id]);
    return { state: payment?.state, reason: payment?.reason };
  }

  it("is watched again once it is released", async () => {
    const ledger = await join("one");
    const { id, token } = await failAndReserve(ledger);
    expect(await watched(ledger)).toEqual([]);
    await ledger.release({ token, payer, countsAgainstPayer: false });
    expect(await ledger.get([id])).toMatchObject([{ state: "failed", reason, carried: 1 }]);
    expect(await watched(ledger)).toEqual([{ id, signature: order.signature }]);
    expect(await ledger.recordOutcomes([{ confirmed: { ids: [id], inclusion } }])).toMatchObject([
      { id, state: "confirmed", inclusion },
    ]);
  });

  it.each(["reserved", "queued"])("is watched again when its process dies: %s", async (state) => {
    const [one, two] = [await join("one"), await join("two")];
    const { id, token } = await failAndReserve(one);
    const signature = `0x${"22".repeat(65)}` as const;
    if (state === "queued") await one.enqueue({ token, payer, order: { ...order, signature } });
    await silence("one");
    await two.releaseAbandoned();
    expect(await ledgerState(two, id)).toEqual({ state: "failed", reason });
    const known = state === "queued" ? signature : order.signature;
    expect(await watched(two)).toEqual([{ id, signature: known }]);
  });

  it("is watched again when its time passes in the queue", async () => {
    const ledger = await join("one");
    const { id, token } = await failAndReserve(ledger, { validBefore: 100n });
    await ledger.enqueue({ token, payer, order });
    await ledger.expire({ network, before: 100n });
    expect(await stateOf(ledger, id)).toBe("failed");
    expect(await watched(ledger)).toHaveLength(1);
  });

  it.each<Partial<ReserveWish>>([{ payTo: relayer }, { value: 9n }, { validBefore: 99n }])(
    "does not give its place to another authorization with its nonce: %o",
    async (change) => {
      const ledger = await join("one");
      const wanted = wish();
      const id = await submit(ledger, wanted);
      await ledger.recordOutcomes([{ failed: [{ ids: [id], reason, inclusion }] }]);
      const other = { ...wanted, ...change };
      expect(await ledger.reserve(other)).toMatchObject({ outcome: "in_use" });
      await ledger.closePayments([id]);
      expect(await ledger.reserve(other)).toMatchObject({ outcome: "reserved" });
    },
  );

  it("forgets that an answer went out when its payment is reserved again", async () => {
    const ledger = await join("one");
    const request = wish({ order });
    const first = await ledger.reserve(request);
    if (first.outcome !== "reserved") throw new Error(first.outcome);
    await ledger.deliver(first.token);
    await ledger.recordOutcomes([{ failed: [{ ids: [first.paymentId], reason }] }]);
    const again = await ledger.reserve(request);
    expect(again.outcome).toBe("reserved");
    expect((await ledger.get([first.paymentId]))[0]?.deliveredAt).toBeUndefined();
  });
});
