/** Batches of one network that moved nothing as a whole, in the last minute. */
export interface SpoiltBatches {
  /**
   * Called when a block holds one, and again with each poll while its payments wait for depth. It
   * counts from the first call.
   */
  note(transactionId: string): void;
  /** Current batch bound, given the bound that holds otherwise. */
  maxPayments(otherwise: number): number;
}

const rememberedMs = 60_000;
/** Each spoilt batch divides the bound of the next ones by this. */
const partLeft = 4;
/** A batch of this size can burn little more than one payment of a payer with code may. */
const smallest = 4;

/**
 * Creates a memory of spoilt batches. A payer that gets code in the block of its batch can burn all
 * the gas of that batch. No trial foresees that. Smaller batches for a minute bound the next such
 * burn.
 */
export function createSpoiltBatches(options: {
  /** Milliseconds. */
  now: () => number;
}): SpoiltBatches {
  const { now } = options;
  /** A transaction that is polled no more is forgotten a while later. */
  const spoilt = new Map<string, { notedAt: number; seenAt: number }>();

  function countRecent(): number {
    let recent = 0;
    for (const [id, { notedAt, seenAt }] of spoilt) {
      if (now() - notedAt < rememberedMs) recent += 1;
      else if (now() - seenAt >= rememberedMs) spoilt.delete(id);
    }
    return recent;
  }

  return {
    note(transactionId) {
      const seenAt = now();
      const notedAt = spoilt.get(transactionId)?.notedAt ?? seenAt;
      spoilt.set(transactionId, { notedAt, seenAt });
    },
    maxPayments(otherwise) {
      const left = Math.floor(otherwise / partLeft ** countRecent());
      return Math.min(otherwise, Math.max(smallest, left));
    },
  };
}
