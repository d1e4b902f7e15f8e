import { createSingleFlight } from "@coinslot/concurrency";

/**
 * The oldest block on which a trial shows that a payment is unused.
 *
 * A restored ledger lacks payments that blocks have executed. A node behind such a block tries them
 * as unused, and their execution would pay for another reservation: content twice for one money. So
 * trials count from the newest block that was known when the ledger was opened anew.
 *
 * ```text
 *                     raise                   head read
 *   any block counts ───────► no block counts ─────────► later blocks count
 *                                  ▲                           │ raise
 *                                  └───────────────────────────┘
 * ```
 *
 * That block may have been made up. So each refusal reads the head again. A new head far below the
 * floor becomes the floor: a node that lags by as much shows an older one.
 */
export interface TrialFloor {
  /** Records a block whose outcomes this process has read. */
  saw(blockNumber: bigint): void;
  /** Called when the ledger is opened anew. */
  raise(): void;
  /** True if a trial on this block counts. Where it does not, the head is read again. */
  admits(blockNumber: bigint): boolean;
}

/** A block further ahead of the head was of another chain. */
const maxAhead = 64n;

/** The newest block, from a node. */
interface Head {
  number: bigint;
  ageMs: number;
}

/** @param blockTimeMs time between two blocks */
export function createTrialFloor(
  readHead: () => Promise<Head>,
  blockTimeMs: () => number,
): TrialFloor {
  let newest = 0n;
  let floor: bigint | undefined = 0n;
  let raises = 0;
  const reading = createSingleFlight(async () => {
    const asked = raises;
    const head = await readHead().catch(() => undefined);
    // A raise meanwhile reads again.
    if (head === undefined || asked !== raises) return;
    const { number, ageMs } = head;
    if (floor === undefined) {
      if (newest > number + maxAhead) newest = number;
      floor = number > newest ? number : newest;
    } else if (floor > number + maxAhead && ageMs < Number(maxAhead) * blockTimeMs()) {
      floor = number;
    }
  });

  return {
    saw(blockNumber) {
      if (blockNumber > newest) newest = blockNumber;
    },
    raise() {
      raises += 1;
      floor = undefined;
      reading.trigger();
    },
    admits(blockNumber) {
      if (floor !== undefined && blockNumber >= floor) return true;
      reading.trigger();
      return false;
    },
  };
}
