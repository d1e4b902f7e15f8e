/** When a chain's blocks come, as far as this process has seen. */
export interface BlockClock {
  /** Records a block that a node has shown as its newest. */
  saw(block: { number: bigint; timestamp: bigint }): void;
  /** Time between two blocks: the usual one, or less where they came faster lately. */
  blockTimeMs(): number;
  /**
   * Time until the next block can be seen. `undefined`: blocks come too fast, or too irregularly,
   * for timestamps in seconds.
   */
  msToBlock(): number | undefined;
}

/** Blocks by which the delay of nodes is judged. */
const samples = 32;
/** Blocks, or usual block times, over which the pace is measured: over fewer it is chance. */
const measuredBlocks = 8;
/** A block further behind belongs to another chain, or the newest one was none. */
const maxBehind = 64n;
/** The usual time where nothing is known about a chain. */
const unknownBlockTimeMs = 1_000;

/**
 * Creates a clock of a chain's blocks. A node shows a block some time after its timestamp, by the
 * clocks of proposer and process. The shortest such delay of late is the delay of the next block.
 */
export function createBlockClock(options: {
  /** `undefined` where blocks come on demand, or it is unknown. */
  blockTimeMs: number | undefined;
  /** Unix milliseconds. */
  now: () => number;
}): BlockClock {
  const { now } = options;
  const usualMs = options.blockTimeMs ?? unknownBlockTimeMs;
  const hasWholeSeconds = options.blockTimeMs !== undefined && usualMs % 1_000 === 0;
  let delays: number[] = [];
  let newest: { number: bigint; timestamp: bigint } | undefined;
  let measuredFrom: { number: bigint; seenAt: number } | undefined;
  let paceMs = usualMs;

  /** Forgets all: the newest block was of another chain, or never was. */
  function begin(): void {
    delays = [];
    newest = undefined;
    measuredFrom = undefined;
    paceMs = usualMs;
  }

  return {
    saw({ number, timestamp }) {
      if (newest !== undefined && number < newest.number - maxBehind) begin();
      if (newest !== undefined && number <= newest.number) return;
      const seenAt = now();
      newest = { number, timestamp };
      measuredFrom ??= { number, seenAt };
      const blocks = Number(number - measuredFrom.number);
      const ms = seenAt - measuredFrom.seenAt;
      if (blocks >= measuredBlocks || ms >= measuredBlocks * usualMs) {
        const eachMs = Math.max(ms / blocks, 0);
        // Within an eighth it is the usual time: the first and the last block were seen late.
        paceMs = eachMs > (usualMs * 7) / 8 ? usualMs : eachMs;
        measuredFrom = { number, seenAt };
      }
      delays = [...delays, seenAt - Number(timestamp) * 1_000].slice(-samples);
    },
    blockTimeMs: () => paceMs,
    msToBlock() {
      if (newest === undefined || !hasWholeSeconds || paceMs < usualMs / 2) return undefined;
      const shownAt = Number(newest.timestamp) * 1_000 + Math.min(...delays);
      const since = (now() - shownAt) % usualMs;
      return since < 0 ? -since : usualMs - since;
    },
  };
}
