import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";

/** A payment that may go into a transaction now. */
export interface Candidate extends OrderedPayment {
  /** What it takes of a batch. */
  gas: bigint;
}

export interface BatchLimits {
  maxPayments: number;
  /** Bound of a payment that was never in a spoilt batch, where it is not `maxPayments`. */
  usualMaxPayments?: number;
  /** Of all calls together. */
  maxGas: bigint;
}

/** What goes into the next transaction, and whether nothing more would fit. */
export interface ChosenBatch<Chosen extends Candidate> {
  chosen: Chosen[];
  isFull: boolean;
}

/**
 * Takes from the front of the queue what goes into the next transaction. The payment of a payer with
 * code goes alone. A payment that was in a transaction which came to nothing goes into a smaller one each
 * time, so that whatever spoils its company is alone in the end.
 */
export function chooseBatch<Chosen extends Candidate>(
  queue: readonly Chosen[],
  limits: BatchLimits,
): ChosenBatch<Chosen> {
  const [first] = queue;
  if (first === undefined) return { chosen: [], isFull: false };
  if (first.payment.isAlone) return { chosen: [first], isFull: true };
  const chosen: Chosen[] = [];
  let gas = 0n;
  const { usualMaxPayments = limits.maxPayments } = limits;
  let most = limits.maxPayments;
  for (const candidate of queue) {
    if (candidate.payment.isAlone) continue;
    const maxWith = Math.min(most, maxBatchSizeFor(candidate, usualMaxPayments));
    if (chosen.length >= maxWith) {
      if (chosen.length >= most) return { chosen, isFull: true };
      continue;
    }
    if (chosen.length > 0 && gas + candidate.gas > limits.maxGas) return { chosen, isFull: true };
    most = maxWith;
    chosen.push(candidate);
    gas += candidate.gas;
  }
  return { chosen, isFull: chosen.length >= most || gas + gasOfLast(chosen) > limits.maxGas };
}

/** With how many it may be in one transaction. */
function maxBatchSizeFor({ payment }: Candidate, maxPayments: number): number {
  return Math.max(1, Math.floor(maxPayments / 4 ** payment.carried));
}

function gasOfLast(chosen: readonly Candidate[]): bigint {
  return chosen.at(-1)?.gas ?? 0n;
}
