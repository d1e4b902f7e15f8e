import type { Network } from "@coinslot/protocol";
import type { Ledger } from "../../ledger/ledger.ts";
import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import type { Lane } from "../../ledger/queries/find-queued.ts";

/**
 * One lane of the queue of a network as one process knows it: the first of what the ledger holds, or all of it. The ledger is right,
 * and says whether a payment is still queued when a transaction is stored for it; but what this process has queued
 * itself need not be read from there again, which would be a tenth of its work under load.
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
  /** This process has queued it. Where not all of the queue is known, it is behind what is, and not held here. */
  add(queued: OrderedPayment): void;
  /** A transaction carries them. */
  remove(payments: readonly OrderedPayment[]): void;
  /** The ledger may hold others, or may not hold these: it is read before anything else is said. */
  invalidate(): void;
  /** How many there are, counted up to a number. */
  count(upTo: number): Promise<number>;
  /** The first ones: those of the ledger in the order of their creation, before those that were added since. */
  first(limit: number): Promise<OrderedPayment[]>;
}

/**
 * Creates what knows nothing yet. Its `first` must not run beside itself.
 *
 * @param maxKnown enough for several transactions: what is behind these is read when they do not fill the next one
 */
export function createKnownQueue(options: {
  ledger: Pick<Ledger, "findQueued" | "countQueued">;
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
    // What is added from here on may be missing in what is read.
    const added = new Map<string, OrderedPayment>();
    known = added;
    isComplete = true;
    let queued: OrderedPayment[];
    try {
      queued = await ledger.findQueued({ network, lane, limit });
    } catch (error) {
      invalidate();
      throw error;
    }
    // Doubted meanwhile, it is no more than what was true for a moment.
    if (known !== added) return queued;
    known = new Map(queued.map((each) => [each.payment.id, each]));
    isComplete = queued.length < limit;
    // Behind what was read, or in it; never in its place, for what was read is what stands there now.
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
      return ledger.countQueued({ network, lane, upTo });
    },
    async first(limit) {
      const isEnough = isComplete || known.size >= limit;
      const queued = isEnough ? [...known.values()] : await read(Math.max(limit, maxKnown));
      return queued.slice(0, limit);
    },
  };
}
