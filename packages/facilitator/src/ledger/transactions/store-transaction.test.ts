import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import {
  authorization,
  hash,
  network,
  order,
  queue,
  relayer,
  stateOf,
  takeLease,
  transaction,
} from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import { releaseAbandoned } from "../maintenance/processes.ts";
import { readQueued } from "../queries/find-queued.ts";
import { getPayments } from "../queries/list-payments.ts";
import { findHashes, findHighestNonce, findOpenTransactions } from "./find-transactions.ts";
import { storeReplacement, storeTransaction } from "./store-transaction.ts";

describe.each(engines)("storing a transaction on %s", (engine) => {
  const { join, silence } = ledgerForEachTest(engine);

  it("writes the transaction, its nonce and its payments' states atomically", async () => {
    const ledger = await join("one");
    const lease = await takeLease(ledger);
    const [a, b] = [await queue(ledger), await queue(ledger)];
    expect(await storeTransaction(ledger, lease, transaction(0, [a]))).toBe("stored");
    expect(await storeTransaction(ledger, lease, transaction(1, [a, b]))).toBe("payments_changed");
    expect(await stateOf(ledger, b)).toBe("queued");
    expect(await storeTransaction(ledger, lease, { ...transaction(0, [b]), id: "other" })).toBe(
      "nonce_taken",
    );
    expect(await stateOf(ledger, b)).toBe("queued");
    expect(await findHighestNonce(ledger, { network, relayer })).toBe(0);
    const open = await findOpenTransactions(ledger, { network, relayer });
    expect(open).toMatchObject([
      { nonce: 0, broadcasts: [{ hash: hash(1_000) }], payments: [{ payment: { id: a }, order }] },
    ]);
  });

  it("is refused for a payment that was requeued under another authorization since it was read", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const id = authorization();
    const paymentId = await queue(one, { id, fingerprint: "GET /a for 10", value: 10n });
    const read = await readQueued(one, { network, ids: [paymentId] });
    await silence("one");
    await releaseAbandoned(two);
    expect(await queue(two, { id, fingerprint: "GET /a for 1", value: 1n })).toBe(paymentId);
    const lease = await takeLease(one);
    const payments = read.map(({ payment }) => payment);
    expect(await storeTransaction(one, lease, { ...transaction(0, []), payments })).toBe(
      "payments_changed",
    );
    expect(await stateOf(two, paymentId)).toBe("queued");
    expect(
      await storeTransaction(two, lease, {
        ...transaction(0, []),
        payments: await getPayments(two, [paymentId]),
      }),
    ).toBe("stored");
  });

  it("is refused for an owner whose lease was taken over", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const lease = await takeLease(one);
    const id = await queue(one);
    await one.leases.release(lease);
    const newer = await takeLease(two);
    expect(await storeTransaction(one, lease, transaction(0, [id]))).toBe("lease_lost");
    expect(await stateOf(one, id)).toBe("queued");
    expect(await storeTransaction(two, newer, transaction(0, [id]))).toBe("stored");
    const replacement = { ...transaction(0, []).broadcast, hash: hash(2_000), maxFeePerGas: 9n };
    const of = { id: transaction(0, [id]).id, broadcast: replacement };
    expect(await storeReplacement(one, lease, of)).toBe("lease_lost");
    expect(await storeReplacement(two, newer, of)).toBe("stored");
    expect(await findHashes(two, of.id)).toEqual([hash(2_000), hash(1_000)]);
  });
});
