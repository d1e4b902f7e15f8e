import type { OrderedPayment } from "../ledger/find-orders.ts";

/** A payment that may go into a transaction now. */
export interface Candidate extends OrderedPayment {
  /** Contracts, and accounts that delegate to one (EIP-7702): their code runs, so they go alone. */
  payerHasCode: boolean;
  /** What it takes of a batch. */
  gas: bigint;
}

export interface BatchLimits {
  mostPayments: number;
  /** Of all calls together. */
  mostGas: bigint;
}

/** What goes into the next transaction, and whether nothing more would fit. */
export interface ChosenBatch {
  chosen: Candidate[];
  isFull: boolean;
}

/**
 * Takes from the front of the queue what goes into the next transaction. A payer with code goes
 * alone. A payment that was in a transaction which came to nothing goes into a smaller one each
 * time, so that whatever spoils its company is alone in the end.
 */
export function chooseBatch(queue: readonly Candidate[], limits: BatchLimits): ChosenBatch {
  const [first] = queue;
  if (first === undefined) return { chosen: [], isFull: false };
  if (goesAlone(first)) return { chosen: [first], isFull: true };
  const chosen: Candidate[] = [];
  let gas = 0n;
  let most = limits.mostPayments;
  for (const candidate of queue) {
    if (goesAlone(candidate)) continue;
    const mostWith = Math.min(most, companyOf(candidate, limits.mostPayments));
    if (chosen.length >= mostWith) {
      if (chosen.length >= most) return { chosen, isFull: true };
      continue;
    }
    if (chosen.length > 0 && gas + candidate.gas > limits.mostGas) return { chosen, isFull: true };
    most = mostWith;
    chosen.push(candidate);
    gas += candidate.gas;
  }
  return { chosen, isFull: chosen.length >= most || gas + gasOfLast(chosen) > limits.mostGas };
}

function goesAlone({ payment, payerHasCode }: Candidate): boolean {
  return payerHasCode || payment.isAlone;
}

/** With how many it may be in one transaction. */
function companyOf({ payment }: Candidate, mostPayments: number): number {
  return Math.max(1, Math.floor(mostPayments / 4 ** payment.carried));
}

function gasOfLast(chosen: readonly Candidate[]): bigint {
  return chosen.at(-1)?.gas ?? 0n;
}
