import {
  parseReceipt,
  receiptCall,
  type TransactionReceipt,
} from "../../evm/transaction-receipt.ts";
import { recordReceipt } from "./record-receipt.ts";
import type { Relayer } from "./relayer-context.ts";
import type { TrackedTransaction } from "./relayer-state.ts";
import { resendStuck } from "./resend-stuck.ts";

/** Reads receipts, records outcomes, and resends or replaces transactions that take too long. */
export async function followTransactions(relayer: Relayer): Promise<void> {
  const open = [...relayer.state.open.values()].sort((a, b) => a.nonce - b.nonce);
  const receipts = await readReceipts(relayer, open);
  const missing: TrackedTransaction[] = [];
  for (const transaction of open) {
    const receipt = receipts.get(transaction.id);
    notice(relayer, transaction, receipt !== undefined);
    if (receipt) await recordReceipt(relayer, transaction, receipt);
    else missing.push(transaction);
  }
  if (missing.length < open.length) relayer.onCapacity();
  await resendStuck(relayer, missing);
}

async function readReceipts(
  { network }: Relayer,
  open: readonly TrackedTransaction[],
): Promise<Map<string, TransactionReceipt>> {
  const asked = open.flatMap(({ id, broadcasts }) => broadcasts.map(({ hash }) => ({ id, hash })));
  const outcomes = await network.rpc.requestMany(asked.map(({ hash }) => receiptCall(hash)));
  const receipts = new Map<string, TransactionReceipt>();
  for (const [index, { id }] of asked.entries()) {
    const outcome = outcomes[index];
    if (outcome && !outcome.ok) throw outcome.error;
    const receipt = parseReceipt(outcome?.result);
    if (receipt) receipts.set(id, receipt);
  }
  return receipts;
}

function notice(
  { context, pace }: Relayer,
  transaction: TrackedTransaction,
  isIncluded: boolean,
): void {
  if (isIncluded && !transaction.isIncluded && transaction.sentAt !== undefined) {
    pace.found(context.clock.now() - transaction.sentAt);
  }
  transaction.isIncluded = isIncluded;
}
