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
 */
export interface TrialFloor {
  /** Records a block whose outcomes this process has read. */
  saw(blockNumber: bigint): void;
  /** Called when the ledger is opened anew. */
  raise(): void;
  /** True if a trial on this block counts. While the head is not known, it is read again. */
  admits(blockNumber: bigint): boolean;
}

/** A block further ahead of the head was of another chain. */
const maxAhead = 64n;

/** @param readHead number of the newest block, from a node */
export function createTrialFloor(readHead: () => Promise<bigint>): TrialFloor {
  let newest = 0n;
  let floor: bigint | undefined = 0n;
  let raises = 0;
  const reading = createSingleFlight(async () => {
    const asked = raises;
    const head = await readHead().catch(() => undefined);
    // A raise meanwhile reads again.
    if (head === undefined || asked !== raises) return;
    if (newest > head + maxAhead) newest = head;
    floor = head > newest ? head : newest;
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
      if (floor !== undefined) return blockNumber >= floor;
      reading.trigger();
      return false;
    },
  };
}
