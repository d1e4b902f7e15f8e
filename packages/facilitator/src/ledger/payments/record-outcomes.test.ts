import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import {
  authorization,
  expire,
  hash,
  inclusion,
  network,
  queue,
  relayer,
  stateOf,
  submit,
  takeLease,
  transaction,
  wish,
} from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import { closePayments } from "../maintenance/close-payments.ts";
import { releaseAbandoned } from "../maintenance/processes.ts";
import { findFailed } from "../queries/find-watched.ts";
import { getPayments } from "../queries/list-payments.ts";
import { findOpenTransactions } from "../transactions/find-transactions.ts";
import { storeTransaction } from "../transactions/store-transaction.ts";
import { finaliseBlocks, findBlocks, undoBlocks } from "../transactions/undo-blocks.ts";
import { type PaymentOutcomes, recordOutcomes } from "./record-outcomes.ts";

describe.each(engines)("recorded outcomes on %s", (engine) => {
  const { join, silence } = ledgerForEachTest(engine);

  it("confirm a failed payment that was executed later, and never fail a confirmed one", async () => {
    const ledger = await join("one");
    const id = await submit(ledger);
    const reason = "invalid_exact_evm_transaction_failed";
    await recordOutcomes(ledger, [{ failed: [{ ids: [id], reason, inclusion }] }]);
    expect(await getPayments(ledger, [id])).toMatchObject([{ state: "failed", reason }]);
    expect(await recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion } }])).toMatchObject([
      { id, state: "confirmed", inclusion },
    ]);
    expect(await recordOutcomes(ledger, [{ failed: [{ ids: [id], reason }] }])).toEqual([]);
    expect(await getPayments(ledger, [id])).toMatchObject([
      { state: "confirmed", reason: undefined, inclusion },
    ]);
  });

  it("leave the payment's next transaction alone, where a receipt is read twice", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const wanted = wish({ balance: { amount: 1_000n, blockNumber: 4n } });
    const id = await submit(one, wanted);
    const [carried] = await getPayments(one, [id]);
    const { transactionId } = carried ?? {};
    const reason = "invalid_exact_evm_transaction_failed" as const;
    const failure: PaymentOutcomes[] = [
      { failed: [{ ids: [id], reason, transactionId, inclusion }] },
    ];
    expect(await recordOutcomes(two, failure)).toHaveLength(1);
    expect(await queue(two, wanted)).toBe(id);
    const lease = await takeLease(two);
    const next = { ...transaction(1, [id]), id: "next" };
    expect(await storeTransaction(two, lease, next)).toBe("stored");
    expect(await recordOutcomes(one, failure)).toEqual([]);
    expect(await stateOf(two, id)).toBe("submitted");
  });

  it("outcomes for queued payments change none that was submitted, or signed again, in the meantime", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const carried = await submit(one);
    const id = authorization();
    const anew = await queue(one, { id, fingerprint: "GET /a for 10", value: 10n });
    await silence("one");
    await releaseAbandoned(two);
    await queue(two, { id, fingerprint: "GET /a for 1", value: 1n });
    const untouched = await queue(two);
    const ids = [carried, anew];
    const reason = "invalid_exact_evm_insufficient_balance";
    const queuedUnder = ["GET /a", "GET /a for 10"];
    expect(await recordOutcomes(two, [{ failed: [{ ids, reason }], queuedUnder }])).toEqual([]);
    expect(await recordOutcomes(two, [{ confirmed: { ids, inclusion }, queuedUnder }])).toEqual([]);
    expect(await stateOf(two, carried)).toBe("submitted");
    expect(await stateOf(two, anew)).toBe("queued");
    expect(
      await recordOutcomes(two, [{ failed: [{ ids: [untouched], reason }], queuedUnder }]),
    ).toMatchObject([{ id: untouched, state: "failed" }]);
  });

  it("are undone when their block leaves the chain, until they are final", async () => {
    const ledger = await join("one");
    const id = await submit(ledger);
    const settled = { id: transaction(0, [id]).id, inclusion, gasUsed: 50_000n };
    await recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion } }], settled);
    expect(await findOpenTransactions(ledger, { network, relayer })).toEqual([]);
    expect(await findBlocks(ledger, network)).toEqual([{ number: 5, hash: hash(5) }]);
    expect(
      await undoBlocks(ledger, { network, blocks: [{ number: 5, hash: hash(5) }] }),
    ).toMatchObject([{ id, wasDelivered: false }]);
    expect(await stateOf(ledger, id)).toBe("submitted");
    expect(await findOpenTransactions(ledger, { network, relayer })).toHaveLength(1);
    await recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion } }], settled);
    expect(
      await finaliseBlocks(ledger, { network, blocks: [{ number: 5, hash: hash(5) }] }),
    ).toEqual([id]);
    expect(await undoBlocks(ledger, { network, blocks: [{ number: 5, hash: hash(5) }] })).toEqual(
      [],
    );
  });

  it("expire a queued payment once its execution has become impossible", async () => {
    const ledger = await join("one");
    const fresh = await queue(ledger, { validBefore: 100n });
    const carried = await submit(ledger, { validBefore: 100n });
    await recordOutcomes(ledger, [
      { requeued: { ids: [carried], transactionId: transaction(0, [carried]).id } },
    ]);
    const later = await queue(ledger, { validBefore: 101n });
    const ended = await expire(ledger, 100n);
    expect(ended.map(({ id }) => id).sort()).toEqual([fresh, carried].sort());
    const stateOfAll = () => Promise.all([fresh, carried, later].map((id) => stateOf(ledger, id)));
    expect(await stateOfAll()).toEqual(["failed", "failed", "queued"]);
    const watched = await findFailed(ledger, { network, limit: 10 });
    expect(watched.map(({ payment }) => payment.id).sort()).toEqual([fresh, carried].sort());
    await closePayments(ledger, [fresh, carried]);
    expect(await stateOfAll()).toEqual(["expired", "failed", "queued"]);
    expect(await findFailed(ledger, { network, limit: 10 })).toEqual([]);
  });

  it("take a payment back from its failed transaction, and not from the next one", async () => {
    const ledger = await join("one");
    const id = await submit(ledger);
    const requeued = { ids: [id], transactionId: transaction(0, [id]).id };
    await recordOutcomes(ledger, [{ requeued }]);
    expect(await stateOf(ledger, id)).toBe("queued");
    const lease = await takeLease(ledger);
    expect(await storeTransaction(ledger, lease, transaction(1, [id]))).toBe("stored");
    await recordOutcomes(ledger, [{ requeued }]);
    expect(await stateOf(ledger, id)).toBe("submitted");
  });
});
