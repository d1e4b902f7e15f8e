import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";

/** A payment that may go into a transaction now. */
export interface Candidate extends OrderedPayment {
  /** Its share of a batch. */
  gas: bigint;
}

export interface BatchLimits {
  maxPayments: number;
  /** Bound for a payment that was never in a spoilt batch, where that is not `maxPayments`. */
  usualMaxPayments?: number;
  /** Of all calls together. */
  maxGas: bigint;
}

/** The contents of the next transaction, and whether it is full. */
export interface ChosenBatch<Chosen extends Candidate> {
  chosen: Chosen[];
  isFull: boolean;
}

/**
 * Takes the next transaction's payments from the front of the queue. The payment of a payer with
 * code goes alone.
 *
 * A payment whose transaction moved nothing goes into a smaller batch each time. So a payment
 * that spoils its batch is alone in the end.
 */
export function chooseBatch<Chosen extends Candidate>(
  queue: readonly Chosen[],
  limits: BatchLimits,
): ChosenBatch<Chosen> {
  const [first] = queue;
  if (first === undefined) return { chosen: [], isFull: false };
  if (first.payment.settlesAlone) return { chosen: [first], isFull: true };
  const chosen: Chosen[] = [];
  let gas = 0n;
  const { usualMaxPayments = limits.maxPayments } = limits;
  let most = limits.maxPayments;
  for (const candidate of queue) {
    if (candidate.payment.settlesAlone) continue;
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

/** Largest batch that it may be part of. */
function maxBatchSizeFor({ payment }: Candidate, maxPayments: number): number {
  return Math.max(1, Math.floor(maxPayments / 4 ** payment.attempts));
}

function gasOfLast(chosen: readonly Candidate[]): bigint {
  return chosen.at(-1)?.gas ?? 0n;
}
