/** Ends of what requests held that could not be written when they came. */
export interface OwedEnds {
  /** Writes the end of what a token holds. If that fails, it is owed, besides that the caller is told. */
  write(token: string, end: () => Promise<void>): Promise<void>;
  /** Owes the end of what a token may hold. */
  owe(token: string, end: () => Promise<void>): void;
  /** Writes what is owed, until one of them fails again: that one comes last then. */
  settle(): Promise<void>;
}

/**
 * Remembers the ends that a database refused which failed for a moment. Without them a payment would be
 * held, and its payer's promise stand, by a request that is long over, for as long as this process lives.
 */
export function createOwedEnds(): OwedEnds {
  const owed = new Map<string, () => Promise<void>>();

  async function write(token: string, end: () => Promise<void>): Promise<void> {
    owed.delete(token);
    try {
      await end();
    } catch (error) {
      owed.set(token, end);
      throw error;
    }
  }

  return {
    write,
    owe: (token, end) => void owed.set(token, end),
    async settle() {
      for (const [token, end] of [...owed]) await write(token, end);
    },
  };
}
