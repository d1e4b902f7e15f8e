import type { BlockClock } from "../block-clock.ts";

/** Wait before each receipt poll for a transaction that was sent, in milliseconds. */
export interface ReceiptPollInterval {
  /** A transaction has been sent: time from then to the first poll. */
  first(): number;
  /** Time to the next poll, after one that found a transaction still open. */
  next(): number;
  /** Records that a transaction was found in a block, and the time since it was sent. */
  found(afterMs: number): void;
}

/** A receipt poll right after the broadcast comes too early on most chains, and is cheap. */
const soonestMs = 2;
/** Longest wait for a first poll: a block may come at any moment. */
const latestFirstMs = 16;
/** Blocks that come faster than this are not waited for one by one. */
const fastBlockMs = 250;
/** One transaction of this many is looked for at once: the chain may have become fast. */
const probeEvery = 8;

/**
 * Polls when a transaction is about to be in a block.
 *
 * Some chains include transactions at once, or in many blocks a second. The first poll comes at
 * three quarters of the time that such a one took lately. The next follows after a quarter of that
 * wait, and then the waits double. A transaction found at the first poll may have been there for a
 * while. So the interval adapts to a faster chain too.
 *
 * On any other chain the first poll is due when the next block can be seen. Each costs as much as a
 * payment's transaction. The second comes soon, where that block came a little late. Then there is
 * one for each block, and one between two blocks.
 */
export function createReceiptPollInterval(options: {
  maxMs: number;
  blocks: Pick<BlockClock, "blockTimeMs" | "msToBlock">;
}): ReceiptPollInterval {
  const { maxMs, blocks } = options;
  let typicalMs: number | undefined;
  let waitMs = soonestMs;
  let sent = 0;
  let polls = 0;
  /** Time before its expected moment at which the next block can be seen. */
  let leadMs = 0;

  function isFast(): boolean {
    const blockTimeMs = blocks.blockTimeMs();
    return typicalMs === undefined || blockTimeMs < fastBlockMs || typicalMs < blockTimeMs / 8;
  }

  function firstWhenFast(): number {
    const expectedMs = ((typicalMs ?? soonestMs) * 3) / 4;
    const wait = Math.min(Math.max(expectedMs, soonestMs), latestFirstMs, maxMs);
    waitMs = Math.max(soonestMs, wait / 4);
    return wait;
  }

  /** Until the next block, and a little more: an early poll is one for nothing. */
  function toBlock(): number {
    const blockTimeMs = blocks.blockTimeMs();
    const expectedMs = blocks.msToBlock();
    if (expectedMs === undefined) return blockTimeMs / 2;
    const wait = expectedMs - leadMs + blockTimeMs / 32;
    return wait < 0 ? wait + blockTimeMs : wait;
  }

  /** The first poll is brought forward until one of them comes too early, time and again. */
  function adjustLead(): void {
    const blockTimeMs = blocks.blockTimeMs();
    const change = polls === 0 ? blockTimeMs / 16 : -blockTimeMs / 8;
    leadMs = Math.min(Math.max(0, leadMs + change), blockTimeMs);
  }

  return {
    first() {
      sent += 1;
      polls = 0;
      return isFast() || sent % probeEvery === 0 ? firstWhenFast() : toBlock();
    },
    next() {
      polls += 1;
      if (!isFast()) return polls % 2 === 0 ? toBlock() : blocks.blockTimeMs() / 8;
      const wait = waitMs;
      waitMs = Math.min(2 * waitMs, maxMs);
      return wait;
    },
    found(afterMs) {
      if (!isFast()) adjustLead();
      const before = afterMs <= 2 * latestFirstMs ? afterMs : (typicalMs ?? afterMs);
      typicalMs = before + (afterMs - before) / 4;
    },
  };
}
