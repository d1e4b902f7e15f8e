import { describe, expect, it } from "vitest";
import type { OpenTransaction } from "../../ledger/transactions/find-transactions.ts";
import {
  countCalls,
  flightOf,
  hasShared,
  type RelayerState,
  trackedFrom,
} from "./relayer-state.ts";

/** A relayer with a transaction of this content in flight. */
function relayerWith(content: "payments" | "calls" | "filler"): RelayerState {
  const form = {
    hash: `0x${"11".repeat(32)}` as const,
    raw: "0x02" as const,
    maxFeePerGas: 1n,
    maxPriorityFeePerGas: 1n,
    content,
    createdAt: 1_000,
  };
  const transaction = {
    id: "1",
    network: "eip155:9745",
    relayer: `0x${"22".repeat(20)}` as const,
    nonce: 0,
    gasLimit: 100_000n,
    createdAt: 1_000,
    broadcasts: [form],
    payments: [],
  } satisfies OpenTransaction;
  const open = new Map([["1", trackedFrom(transaction, 1_000)]]);
  return { lease: undefined, nextNonce: 1, open, farSince: undefined, isFarLogged: false };
}

describe("the transactions of a relayer in flight", () => {
  it("the transactions of a relayer in flight that carry payments let others gather behind them", () => {
    const relayer = relayerWith("payments");
    expect(hasShared(relayer)).toBe(true);
    expect(flightOf([relayer])).toEqual({ oldestAt: 1_000, newestAt: 1_000 });
    expect(countCalls(relayer)).toBe(0);
  });

  it("the transactions of a relayer in flight that make calls of ours keep no payment waiting", () => {
    const relayer = relayerWith("calls");
    expect(hasShared(relayer)).toBe(false);
    expect(flightOf([relayer])).toBeUndefined();
    expect(countCalls(relayer)).toBe(1);
  });
});
