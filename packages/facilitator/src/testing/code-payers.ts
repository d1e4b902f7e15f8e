import { expect } from "vitest";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { recordOutcomes } from "../ledger/payments/record-outcomes.ts";
import { reservePayment } from "../ledger/payments/reserve-payments.ts";
import { storeTransaction } from "../ledger/transactions/store-transaction.ts";
import { hash, inclusion, payer, takeLease, transaction, wish } from "./ledger-payments.ts";

/** An execution by another sender, in the block of the transaction with nonce 0. */
export const inAnother = { ...inclusion, transactionHash: hash(7_000) };

export const other = `0x${"ee".repeat(20)}` as const;
export const third = `0x${"ef".repeat(20)}` as const;
export const fourth = `0x${"f0".repeat(20)}` as const;
export type Payer = typeof other | typeof third | typeof fourth | typeof payer;
/** A third of what the ledgers of these tests may risk in a minute. */
const gasAtRisk = 300_000n;

export const by = (from: Payer, changes = {}) => {
  const wished = wish();
  return { ...wished, id: { ...wished.id, payer: from }, gasAtRisk, ...changes };
};

export async function carry(ledger: LedgerContext, id: string, nonce: number): Promise<void> {
  const lease = await takeLease(ledger);
  expect(await storeTransaction(ledger, lease, transaction(nonce, [id]))).toBe("stored");
  await ledger.leases.release(lease);
}

export async function hold(ledger: LedgerContext, from: Payer, changes = {}): Promise<string> {
  const held = await reservePayment(ledger, by(from, changes));
  if (held.outcome !== "reserved") throw new Error(held.outcome);
  return held.token;
}

export async function burn(ledger: LedgerContext, id: string, nonce: number): Promise<void> {
  await carry(ledger, id, nonce);
  const reason = "invalid_exact_evm_transaction_failed";
  await recordOutcomes(ledger, [
    { failed: [{ ids: [id], reason, inclusion, burn: { payer, gas: 320_000n, isBlamed: true } }] },
  ]);
}
