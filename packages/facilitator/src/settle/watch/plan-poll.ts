import type { KnownBlock } from "../../ledger/transactions/undo-blocks.ts";

/**
 * Facts that decide the time of the next poll. Times by this process's clock. The present one is
 * none of them: each sweep plans anew, and would put the poll off.
 */
export interface PollFacts {
  /** Time of the last read of the head. */
  lookedAt: number;
  head: bigint;
  /** Blocks with payments that are not final, each with the time at which it was seen first. */
  blocks: readonly (KnownBlock & { seenAt: number })[];
  /** A submitted payment is past its validity: its end waits for a final block. */
  hasOverdue: boolean;
  /** Time since when a queued payment is past its validity: its buyer waits for the next head. */
  overdueSince: number | undefined;
  /** Time of the last look-up that found a failed payment which a sender may still execute. */
  failedAt: number | undefined;
  /** Or the shortest interval between two polls, if that is longer. */
  blockTimeMs: number;
  finalAfter: number;
  settlingMs: number;
  idleMs: number;
}

/**
 * Time of the next poll of the chain's head.
 *
 * - Nothing is open: after `idleMs`.
 * - A block with payments: when it is expected to be final. Before that once in `settlingMs`, and
 *   less often as it grows older, up to `idleMs`. So a payment that a reorganisation has taken back
 *   is sent again long before it expires.
 * - Many such blocks: as many polls as blocks, up to each block.
 * - A failed payment that a sender may still execute: as for a block. It may never expire.
 * - A queued payment past its validity: after each block. Where blocks do not end it, less and less
 *   often, up to `settlingMs`.
 */
export function planPoll(facts: PollFacts): number {
  const { lookedAt, head, blocks, blockTimeMs, finalAfter, settlingMs, idleMs } = facts;
  const { hasOverdue, overdueSince, failedAt } = facts;
  const lessAndLess = (since: number) => Math.min(Math.max(settlingMs, lookedAt - since), idleMs);
  const times = [lookedAt + idleMs];
  if (hasOverdue) times.push(lookedAt + settlingMs);
  if (overdueSince !== undefined) {
    times.push(lookedAt + Math.min(Math.max(0, lookedAt - overdueSince), settlingMs));
  }
  if (failedAt !== undefined) times.push(lookedAt + lessAndLess(failedAt));
  const finalMs = finalAfter * blockTimeMs;
  if (blocks.length > 1) times.push(lookedAt + Math.max(blockTimeMs, finalMs / blocks.length));
  let newest = Number.NEGATIVE_INFINITY;
  for (const { number, seenAt } of blocks) {
    newest = Math.max(newest, seenAt);
    const missing = number + finalAfter - Number(head);
    // A head below the block was read before it, so it says nothing about the time since.
    if (Number(head) < number) times.push(seenAt + finalMs + blockTimeMs / 2);
    else times.push(lookedAt + Math.max(1, missing) * blockTimeMs);
  }
  if (blocks.length > 0) times.push(Math.max(lookedAt, newest) + lessAndLess(newest));
  return Math.max(Math.min(...times), lookedAt + Math.min(blockTimeMs, idleMs));
}
