import type { Clock } from "@coinslot/chain";
import type { Network } from "@coinslot/protocol";
import type { LedgerReads } from "../../ledger/ledger-context.ts";
import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import {
  findQueued,
  type Lane,
  type QueuedName,
  readQueued,
} from "../../ledger/queries/find-queued.ts";

/**
 * One lane of the payments that this process is to settle. It has queued them itself, another
 * process has handed them over, or they were left in the ledger's queue. The ledger is right. It
 * decides whether a payment is still queued when a transaction is stored for it.
 *
 * ```text
 *              adopt, sweep                    read: still queued
 *   (the ledger's) ─────────────► unread ────────────────────────► known ◄── add: queued here
 *         ▲                         │ ▲                             │ │
 *         │    read: not queued     │ └──── doubt: a lost race ─────┘ │
 *         └─────────────────────────┴─ remove: carried, ended, overdue ─┘
 * ```
 */
export interface KnownQueue {
  /** Adds a payment that this process has queued. */
  add(queued: OrderedPayment): void;
  /** Removes payments that a transaction carries, that have ended, or whose time is over. */
  remove(ids: readonly string[]): void;
  /** Reads these again before the next answer: they may not be queued any more. */
  doubt(payments: readonly OrderedPayment[]): void;
  /** Reads all again before the next answer. */
  invalidate(): void;
  /** Number of payments, counted up to a bound. */
  count(upTo: number): number;
  /** The first payments, in the order in which they were added or created. */
  first(limit: number): Promise<OrderedPayment[]>;
}

/** Both lanes of a network. */
export interface KnownQueues extends Readonly<Record<Lane, KnownQueue>> {
  /** Adds queued payments of the ledger by their ids. They are read before the next answer. */
  adopt(ids: readonly string[]): void;
  /**
   * Reads the names of the queued payments, and adopts those that are left there. Their holder has
   * not settled them within its patience, counted from the first sweep that found them.
   *
   * @param patienceWith milliseconds for which a payment is left to another process
   */
  sweep(patienceWith: (processId: string) => number): Promise<void>;
  /** True if a payment was queued here and not held: a sweep finds it. */
  hasDropped(): boolean;
  /** Ids of all payments in both lanes. */
  ids(): string[];
  /** Reads all payments again before the next answer. */
  invalidate(): void;
  /** Forgets all payments: another process settles them. */
  clear(): void;
}

/** Payments read by one statement. */
const maxRead = 500;
/** Oldest payments whose names a sweep reads. */
const maxSwept = 512;

interface Queues {
  ledger: LedgerReads & { readonly processId: string };
  network: Network;
  lanes: Readonly<Record<Lane, Map<string, OrderedPayment>>>;
  unread: Set<string>;
  clock: Pick<Clock, "now">;
  /** When each queued payment was found first, by this clock. */
  foundAt: ReadonlyMap<string, number>;
  hasDropped: boolean;
  maxHeld: number;
}

/**
 * Creates empty queues. `first` and `sweep` must not run concurrently with one another.
 *
 * @param options `maxHeld`: payments held in memory, default 4,096. Sweeps find those beyond
 */
export function createKnownQueues(options: {
  ledger: LedgerReads & { readonly processId: string };
  network: Network;
  clock: Pick<Clock, "now">;
  maxHeld?: number;
}): KnownQueues {
  const { ledger, network, clock, maxHeld = 4_096 } = options;
  const queues: Queues = {
    ledger,
    network,
    clock,
    maxHeld,
    lanes: { shared: new Map(), alone: new Map() },
    unread: new Set(),
    foundAt: new Map(),
    hasDropped: false,
  };
  const { lanes, unread } = queues;
  const shared = createLane(queues, "shared");
  const alone = createLane(queues, "alone");

  return {
    shared,
    alone,
    invalidate() {
      shared.invalidate();
      alone.invalidate();
    },
    adopt(ids) {
      for (const id of ids) unread.add(id);
    },
    sweep: (patienceWith) => sweep(queues, patienceWith),
    hasDropped: () => queues.hasDropped && sizeOf(queues) < maxHeld / 2,
    ids: () => [...lanes.shared.keys(), ...lanes.alone.keys(), ...unread],
    clear() {
      lanes.shared.clear();
      lanes.alone.clear();
      unread.clear();
    },
  };
}

function createLane(queues: Queues, lane: Lane): KnownQueue {
  const { lanes, unread } = queues;
  const known = lanes[lane];
  return {
    add(queued) {
      if (sizeOf(queues) < queues.maxHeld) known.set(queued.payment.id, queued);
      else queues.hasDropped = true;
    },
    remove(ids) {
      for (const id of ids) known.delete(id);
    },
    doubt(payments) {
      for (const { payment } of payments) if (known.delete(payment.id)) unread.add(payment.id);
    },
    invalidate() {
      for (const id of known.keys()) unread.add(id);
      known.clear();
    },
    // The lane of an unread payment stands in its row alone.
    count: (upTo) => Math.min(known.size + unread.size, upTo),
    async first(limit) {
      if (unread.size > 0) await readUnread(queues);
      const first: OrderedPayment[] = [];
      for (const queued of known.values()) {
        if (first.length >= limit) break;
        first.push(queued);
      }
      return first;
    },
  };
}

function sizeOf({ lanes, unread }: Queues): number {
  return lanes.shared.size + lanes.alone.size + unread.size;
}

async function readUnread({ ledger, network, lanes, unread }: Queues): Promise<void> {
  while (unread.size > 0) {
    const ids = [...unread].slice(0, maxRead);
    // A payment that is adopted during the read is read again.
    for (const id of ids) unread.delete(id);
    try {
      for (const queued of await readQueued(ledger, { network, ids })) {
        lanes[queued.payment.settlesAlone ? "alone" : "shared"].set(queued.payment.id, queued);
      }
    } catch (error) {
      for (const id of ids) unread.add(id);
      throw error;
    }
  }
  // Older payments were left by others, or have lost a race: they go first.
  for (const lane of [lanes.shared, lanes.alone]) sort(lane);
}

/** Ids begin with the time of creation. */
function sort(lane: Map<string, OrderedPayment>): void {
  const sorted = [...lane].sort(([a], [b]) => (a < b ? -1 : 1));
  lane.clear();
  for (const [id, queued] of sorted) lane.set(id, queued);
}

async function sweep(queues: Queues, patienceWith: (processId: string) => number): Promise<void> {
  const { ledger, network, clock, lanes, unread } = queues;
  const before = [...lanes.shared.keys(), ...lanes.alone.keys()];
  const names = await findQueued(ledger, { network, limit: maxSwept });
  const now = clock.now();
  const foundAt = new Map(names.map(({ id }) => [id, queues.foundAt.get(id) ?? now]));
  const isLeft = ({ id, owner }: QueuedName) =>
    owner === null ||
    owner === ledger.processId ||
    now - (foundAt.get(id) ?? now) >= patienceWith(owner);
  const isKnown = ({ id }: QueuedName) => lanes.shared.has(id) || lanes.alone.has(id);
  for (const name of names) if (isLeft(name) && !isKnown(name)) unread.add(name.id);
  queues.foundAt = foundAt;
  if (names.length === maxSwept) return;
  queues.hasDropped = false;
  // Known before the read, and not in the queue: another process has settled it, or it has ended.
  for (const id of before) {
    if (foundAt.has(id)) continue;
    lanes.shared.delete(id);
    lanes.alone.delete(id);
  }
}
