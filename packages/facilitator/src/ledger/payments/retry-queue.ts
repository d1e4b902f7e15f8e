/** Retry queue for `release` and `deliver` writes that failed. */
export interface RetryQueue {
  /**
   * Writes the end of a token's reservation. On failure it is queued for a retry, and the caller
   * gets the error.
   */
  write(token: string, end: () => Promise<void>): Promise<void>;
  /** Queues the end of a token's possible reservation. */
  add(token: string, end: () => Promise<void>): void;
  /**
   * Retries the queued writes until one of them fails again. That one goes to the back of the
   * queue.
   */
  retryPending(): Promise<void>;
}

/**
 * Remembers the writes that a transient fault of the database refused. Without the retry, a request
 * that is long over would hold its payment for as long as this process lives. Its payer's promise
 * would stand as long.
 */
export function createRetryQueue(): RetryQueue {
  const pending = new Map<string, () => Promise<void>>();

  async function write(token: string, end: () => Promise<void>): Promise<void> {
    pending.delete(token);
    try {
      await end();
    } catch (error) {
      pending.set(token, end);
      throw error;
    }
  }

  return {
    write,
    add: (token, end) => void pending.set(token, end),
    async retryPending() {
      for (const [token, end] of [...pending]) await write(token, end);
    },
  };
}
