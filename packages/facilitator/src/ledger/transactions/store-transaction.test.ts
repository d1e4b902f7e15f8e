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

describe.each(engines)("transactions on %s", (engine) => {
  const { join, silence } = ledgerForEachTest(engine);

  it("stores a transaction, its nonce and the move of its payments together or not at all", async () => {
    const ledger = await join("one");
    const lease = await takeLease(ledger);
    const [a, b] = [await queue(ledger), await queue(ledger)];
    expect(await ledger.storeTransaction(lease, transaction(0, [a]))).toBe("stored");
    expect(await ledger.storeTransaction(lease, transaction(1, [a, b]))).toBe("payments_changed");
    expect(await stateOf(ledger, b)).toBe("queued");
    expect(await ledger.storeTransaction(lease, { ...transaction(0, [b]), id: "other" })).toBe(
      "nonce_taken",
    );
    expect(await stateOf(ledger, b)).toBe("queued");
    expect(await ledger.findHighestNonce({ network, relayer })).toBe(0);
    const open = await ledger.findOpenTransactions({ network, relayer });
    expect(open).toMatchObject([
      { nonce: 0, broadcasts: [{ hash: hash(1_000) }], payments: [{ payment: { id: a }, order }] },
    ]);
  });

  it("stores nothing for a payment that was given up and has been queued for another authorization since it was read", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const id = authorization();
    const paymentId = await queue(one, { id, fingerprint: "GET /a for 10", value: 10n });
    const read = await one.findQueued({ network, lane: "shared", limit: 10 });
    await silence("one");
    await two.releaseAbandoned();
    expect(await queue(two, { id, fingerprint: "GET /a for 1", value: 1n })).toBe(paymentId);
    const lease = await takeLease(one);
    const payments = read.map(({ payment }) => payment);
    expect(await one.storeTransaction(lease, { ...transaction(0, []), payments })).toBe(
      "payments_changed",
    );
    expect(await stateOf(two, paymentId)).toBe("queued");
    expect(
      await two.storeTransaction(lease, {
        ...transaction(0, []),
        payments: await two.get([paymentId]),
      }),
    ).toBe("stored");
  });

  it("stores nothing for an owner whose lease another has taken", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const lease = await takeLease(one);
    const id = await queue(one);
    await one.leases.release(lease);
    const newer = await takeLease(two);
    expect(await one.storeTransaction(lease, transaction(0, [id]))).toBe("lease_lost");
    expect(await stateOf(one, id)).toBe("queued");
    expect(await two.storeTransaction(newer, transaction(0, [id]))).toBe("stored");
    const replacement = { ...transaction(0, []).broadcast, hash: hash(2_000), maxFeePerGas: 9n };
    const of = { id: transaction(0, [id]).id, broadcast: replacement };
    expect(await one.storeReplacement(lease, of)).toBe("lease_lost");
    expect(await two.storeReplacement(newer, of)).toBe("stored");
    expect(await two.findHashes(of.id)).toEqual([hash(2_000), hash(1_000)]);
  });
});
