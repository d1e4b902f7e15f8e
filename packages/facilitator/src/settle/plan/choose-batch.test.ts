import { describe, expect, it } from "vitest";
import { type Candidate, chooseBatch } from "./choose-batch.ts";

const limits = { maxPayments: 16, maxGas: 1_000n };

function candidate(
  changes: { gas?: bigint; settlesAlone?: boolean; attempts?: number } = {},
): Candidate {
  const { gas = 10n, settlesAlone = false, attempts = 0 } = changes;
  return {
    gas,
    order: { payTo: "0x", validAfter: 0n, signature: "0x" },
    payment: {
      id: "",
      kind: "eip3009",
      authorization: { network: "eip155:1", asset: "0x", payer: "0x", nonce: "0x" },
      value: 1n,
      validBefore: 1n,
      fingerprint: "",
      unusedAtBlock: undefined,
      transactionId: undefined,
      attempts,
      settlesAlone,
      inclusion: undefined,
    },
  };
}

function many(count: number, changes = {}): Candidate[] {
  return Array.from({ length: count }, () => candidate(changes));
}

describe("the choice of a batch", () => {
  it("takes every waiting payment, and reports room for more", () => {
    expect(chooseBatch(many(5), limits)).toMatchObject({ chosen: { length: 5 }, isFull: false });
    expect(chooseBatch([], limits)).toEqual({ chosen: [], isFull: false });
  });

  it("is full by count and by gas", () => {
    expect(chooseBatch(many(20), limits)).toMatchObject({ chosen: { length: 16 }, isFull: true });
    expect(chooseBatch(many(20, { gas: 300n }), limits)).toMatchObject({
      chosen: { length: 3 },
      isFull: true,
    });
  });

  it("takes one payment above the limit, rather than none", () => {
    expect(chooseBatch(many(2, { gas: 5_000n }), limits)).toMatchObject({
      chosen: { length: 1 },
      isFull: true,
    });
  });

  it("takes a payer with code alone", () => {
    const queue = [candidate({ settlesAlone: true }), ...many(3)];
    expect(chooseBatch(queue, limits)).toEqual({ chosen: [queue[0]], isFull: true });
    expect(
      chooseBatch([...many(2), candidate({ settlesAlone: true }), ...many(1)], limits).chosen,
    ).toHaveLength(3);
  });

  it("gives a payment smaller batches after each failed transaction", () => {
    expect(chooseBatch(many(16, { attempts: 1 }), limits).chosen).toHaveLength(4);
    expect(chooseBatch(many(16, { attempts: 2 }), limits).chosen).toHaveLength(1);
    expect(chooseBatch(many(16, { attempts: 9 }), limits).chosen).toHaveLength(1);
  });
});
