/** Enough for a chain with quick blocks, a resend and a replacement. */
const minMs = 30_000;
/** Less than the two minutes that our client waits for an answer. */
const maxMs = 100_000;
/** A late payment waits for the second block. Either may fall out. */
const blocks = 4;

/**
 * Default time that a facilitator waits for the outcome of a settlement, in milliseconds, by the
 * time between two blocks. `depth`: blocks that must stand on top of a payment's own.
 */
export function settleTimeoutMsFor(blockMs: number | undefined, depth = 0): number {
  return Math.min(Math.max(minMs, (blocks + depth) * (blockMs ?? 0)), maxMs);
}
