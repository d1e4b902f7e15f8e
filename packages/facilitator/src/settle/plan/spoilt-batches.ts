/** Batches of one network that came to nothing as a whole a moment ago. */
export interface SpoiltBatches {
  /** Called when a block holds one. No effect for a transaction that is known. */
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
  const notedAt = new Map<string, number>();

  function recent(): number {
    // Insertion order is age order.
    for (const [id, at] of notedAt) {
      if (now() - at < rememberedMs) break;
      notedAt.delete(id);
    }
    return notedAt.size;
  }

  return {
    note(transactionId) {
      if (!notedAt.has(transactionId)) notedAt.set(transactionId, now());
    },
    maxPayments(otherwise) {
      const left = Math.floor(otherwise / partLeft ** recent());
      return Math.min(otherwise, Math.max(smallest, left));
    },
  };
}
