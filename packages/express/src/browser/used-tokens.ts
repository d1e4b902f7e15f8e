/** Tokens that were used, each until it has expired. */
export interface UsedTokens {
  /**
   * Marks a token as used.
   *
   * @param token its only name: another spelling of it would be another token
   * @param expiresAt Unix milliseconds, as `now`
   * @returns whether it was unused
   */
  use(token: string, expiresAt: number, now: number): boolean;
  /** Number of tokens in memory. */
  size(): number;
}

/** About 10 MB. A minute of more sales to people forgets the oldest. */
const maxTokens = 100_000;

/**
 * Creates the memory of one process. Only authentic tokens come in, one for each paid answer, and
 * they have one lifetime: the first in is the first to expire. A token that was forgotten opens its
 * answer once more, as does one in another process of the seller. It buys nothing.
 */
export function createUsedTokens({ max = maxTokens }: { max?: number } = {}): UsedTokens {
  const used = new Map<string, number>();
  return {
    use(token, expiresAt, now) {
      for (const [old, end] of used) {
        if (end > now) break;
        used.delete(old);
      }
      if (used.has(token)) return false;
      const [oldest] = used.size >= max ? used.keys() : [];
      if (oldest !== undefined) used.delete(oldest);
      used.set(token, expiresAt);
      return true;
    },
    size: () => used.size,
  };
}
