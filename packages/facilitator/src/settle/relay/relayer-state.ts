import type { Lease } from "@coinslot/storage";
import type { OpenTransaction } from "../../ledger/transactions/find-transactions.ts";

/** An open transaction, as observed by this process. Times by this process's clock. */
export interface TrackedTransaction extends OpenTransaction {
  /** When its first form was signed here, or it was taken over. */
  readonly followedAt: number;
  /** When its newest form was signed here, or taken over. */
  formedAt: number;
  /** Time at which its newest form was sent last; `undefined`: not by this process. */
  sentAt: number | undefined;
  /** Since when its nonce has been seen as used, without a receipt of ours. */
  nonceUsedSince: number | undefined;
  /** The newest block when that was seen first. */
  nonceUsedAtBlock: bigint | undefined;
  /** Since when the answers about its receipt cannot be read. */
  unreadableSince: number | undefined;
  /** The log has a line about such an answer. */
  isUnreadableLogged: boolean;
  /** A node may have one of its forms. */
  maybeSent: boolean;
  /** Number of its broadcasts without an answer yet: a node may have it by one of them. */
  unanswered: number;
  /** Its nonce was used before any node had it: it cannot be what has used it. */
  isTooLate: boolean;
  /** Every endpoint has refused its newest form as one with a used nonce. */
  isNonceRefused: boolean;
  /** Number of a node's answers that it would never take the transaction. */
  refusals: number;
  /** A node has returned that the relayer cannot pay the form that was sent last. */
  isTooDear: boolean;
  /** A block holds it. Some of its payments wait for depth. */
  isIncluded: boolean;
}

/** State of a relayer for which this process plans. The ledger has it too, except times. */
export interface RelayerState {
  lease: Lease | undefined;
  /**
   * The next nonce to use; `undefined` until ledger and chain have been reconciled under this
   * lease.
   */
  nextNonce: number | undefined;
  open: Map<string, TrackedTransaction>;
  /** Since when the chain's nonces are seen far below the open ones. */
  farSince: number | undefined;
  /** The log has a line about that. */
  isFarLogged: boolean;
}

/** Begins to track an open transaction. */
export function trackedFrom(transaction: OpenTransaction, now: number): TrackedTransaction {
  return {
    followedAt: now,
    formedAt: now,
    sentAt: undefined,
    nonceUsedSince: undefined,
    nonceUsedAtBlock: undefined,
    unreadableSince: undefined,
    isUnreadableLogged: false,
    maybeSent: true,
    unanswered: 0,
    isTooLate: false,
    isNonceRefused: false,
    refusals: 0,
    isTooDear: false,
    isIncluded: false,
    ...transaction,
  };
}

/** The form that was signed last. */
export function newestForm({ broadcasts, id }: OpenTransaction) {
  const newest = broadcasts.at(-1);
  if (newest === undefined) throw new TypeError(`Transaction ${id} has no signed form`);
  return newest;
}

/**
 * Merges the ledger's state into this process's. It adds forms that were stored without a
 * confirmation here, and payments whose outcome a reorganisation has taken back.
 */
export function learnFromLedger(
  tracked: TrackedTransaction,
  { broadcasts, payments }: OpenTransaction,
): void {
  const known = new Set(tracked.broadcasts.map(({ hash }) => hash));
  tracked.broadcasts.push(...broadcasts.filter(({ hash }) => !known.has(hash)));
  tracked.payments = payments;
}

/** Number of transactions that no block holds yet. */
export function countInFlight({ open }: RelayerState): number {
  let count = 0;
  for (const { isIncluded } of open.values()) if (!isIncluded) count += 1;
  return count;
}

/** Number of these that carry a payment which goes alone: one of a payer with code. */
export function countAlone({ open }: RelayerState): number {
  let count = 0;
  for (const transaction of open.values()) {
    if (!transaction.isIncluded && isAlone(transaction)) count += 1;
  }
  return count;
}

/** Number of these that carry a call of ours, and no payment. */
export function countCalls({ open }: RelayerState): number {
  let count = 0;
  for (const transaction of open.values()) {
    if (!transaction.isIncluded && isCall(transaction)) count += 1;
  }
  return count;
}

/** True if one of these carries a payment that others may join: payments gather behind it. */
export function hasShared({ open }: RelayerState): boolean {
  for (const transaction of open.values()) if (isShared(transaction)) return true;
  return false;
}

/** Transactions for several payers that no block holds yet: the time of the first, and the last. */
export interface Flight {
  oldestAt: number;
  newestAt: number;
}

/**
 * The shared transactions of these relayers that no block holds yet; `undefined`: there is none.
 */
export function flightOf(states: readonly RelayerState[]): Flight | undefined {
  let flight: Flight | undefined;
  for (const { open } of states) {
    for (const transaction of open.values()) {
      if (!isShared(transaction)) continue;
      const { followedAt } = transaction;
      flight ??= { oldestAt: followedAt, newestAt: followedAt };
      flight.oldestAt = Math.min(flight.oldestAt, followedAt);
      flight.newestAt = Math.max(flight.newestAt, followedAt);
    }
  }
  return flight;
}

/** Behind calls of ours no payment waits: they come without end where their callers wish. */
function isShared(transaction: TrackedTransaction): boolean {
  return !transaction.isIncluded && !isAlone(transaction) && !isCall(transaction);
}

function isCall({ broadcasts }: TrackedTransaction): boolean {
  return broadcasts.some(({ content }) => content === "calls");
}

function isAlone({ payments }: TrackedTransaction): boolean {
  return payments.some(({ payment }) => payment.settlesAlone);
}

/** Most that the transactions may cost that no block holds yet, in wei. */
export function costInFlight({ open }: RelayerState): bigint {
  let cost = 0n;
  for (const transaction of open.values()) {
    if (transaction.isIncluded) continue;
    cost += transaction.gasLimit * newestForm(transaction).maxFeePerGas;
  }
  return cost;
}
