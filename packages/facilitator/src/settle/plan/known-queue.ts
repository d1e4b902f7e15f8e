import type { Network } from "@coinslot/protocol";
import type { LedgerReads } from "../../ledger/ledger-context.ts";
import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import { countQueued, findQueued, type Lane } from "../../ledger/queries/find-queued.ts";

/**
 * One lane of a network's queue as one process knows it: the first payments of the ledger's queue,
 * or all of it. The ledger is right. It decides whether a payment is still queued when a
 * transaction is stored for it. A payment that this process has queued itself need not be read from
 * there again: that would be a tenth of its work under load.
 *
 * ```text
 *             read: that was all
 *   unknown ──────────────────────► complete ◄─┐ add: queued here
 *    ▲   └────────────► beginning      │  │    │ remove: a transaction carries it
 *    │  read: there is    │   ▲        │  └────┘
 *    │  more behind it    │   └────────┘ add: too many to hold
 *    └────────────────────┴── doubt, or too little is left of a beginning
 * ```
 */
export interface KnownQueue {
  /**
   * Adds a payment that this process has queued. Where only a beginning is known, it stands behind
   * that, and is not held here.
   */
  add(queued: OrderedPayment): void;
  /** Removes payments that a transaction carries. */
  remove(payments: readonly OrderedPayment[]): void;
  /**
   * Invalidates the queue: the ledger may hold others, or may not hold these. It is read before the
   * next answer.
   */
  invalidate(): void;
  /** Number of queued payments, counted up to a bound. */
  count(upTo: number): Promise<number>;
  /** The first payments: the ledger's in the order of their creation, then those added since. */
  first(limit: number): Promise<OrderedPayment[]>;
}

/**
 * Creates a queue of which nothing is known yet. Its `first` must not run concurrently with itself.
 *
 * @param maxKnown enough for several transactions. Payments behind these are read when these do not
 * fill the next one.
 */
export function createKnownQueue(options: {
  ledger: LedgerReads;
  network: Network;
  lane: Lane;
  maxKnown: number;
}): KnownQueue {
  const { ledger, network, lane, maxKnown } = options;
  let known = new Map<string, OrderedPayment>();
  let isComplete = false;

  function invalidate(): void {
    known = new Map();
    isComplete = false;
  }

  async function read(limit: number): Promise<OrderedPayment[]> {
    // A payment added from here on may be missing in the result of the read.
    const added = new Map<string, OrderedPayment>();
    known = added;
    isComplete = true;
    let queued: OrderedPayment[];
    try {
      queued = await findQueued(ledger, { network, lane, limit });
    } catch (error) {
      invalidate();
      throw error;
    }
    // Invalidated meanwhile, so the result was true only for a moment.
    if (known !== added) return queued;
    known = new Map(queued.map((each) => [each.payment.id, each]));
    isComplete = queued.length < limit;
    // Behind the result of the read, or in it, and never in its place: the result is the front of
    // the queue now.
    if (isComplete) for (const [id, each] of added) if (!known.has(id)) known.set(id, each);
    return queued;
  }

  return {
    add(queued) {
      if (isComplete && known.size >= maxKnown) isComplete = false;
      if (isComplete) known.set(queued.payment.id, queued);
    },
    remove(payments) {
      for (const { payment } of payments) known.delete(payment.id);
    },
    invalidate,
    async count(upTo) {
      if (isComplete || known.size >= upTo) return Math.min(known.size, upTo);
      return countQueued(ledger, { network, lane, upTo });
    },
    async first(limit) {
      const isEnough = isComplete || known.size >= limit;
      const queued = isEnough ? [...known.values()] : await read(Math.max(limit, maxKnown));
      return queued.slice(0, limit);
    },
  };
}
