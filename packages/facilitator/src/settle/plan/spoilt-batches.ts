/** Batches that came to nothing as a whole a moment ago, on one network. */
export interface SpoiltBatches {
  /** To be called when a block holds one; of no effect for a transaction that is known. */
  note(transactionId: string): void;
  /** How many payments a batch may carry now, of so many that it may carry otherwise. */
  maxPayments(otherwise: number): number;
}

const rememberedMs = 60_000;
/** Each spoilt batch leaves the next ones this part of their payments. */
const partLeft = 4;
/** They may burn little more than one payment of a payer with code may. */
const smallest = 4;

/**
 * Creates a memory of spoilt batches. A payer that gets code in the block of its batch can burn all the gas of that
 * batch, which no trial foresees. Smaller batches for a minute bound what it burns the next time.
 */
export function createSpoiltBatches(options: {
  /** Milliseconds. */
  now: () => number;
}): SpoiltBatches {
  const { now } = options;
  const notedAt = new Map<string, number>();

  function recent(): number {
    // The order of insertion is that of age.
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
