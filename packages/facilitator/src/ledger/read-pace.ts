import { type Clock, sleep, systemClock } from "@coinslot/chain";

/** Share of the time that one reader takes beside buyers. */
const share = 0.02;
/** Time by which reads may be ahead of their share: pages for a person do not wait. */
const burstMs = 5_000;
/** Longest wait. Reads at the same time count for more: each is as long as its queue. */
const maxWaitMs = 2_000;
/** Reads have all the time again once no buyer came for this long. */
const quietMs = 1_000;

/** Pace of long reads beside buyers. */
export interface ReadPace {
  /** Reads one part of a list once it is due. Rejects as `read` does. */
  run<Result>(read: () => Promise<Result>): Promise<Result>;
  /** A buyer is here: reads give way. */
  giveWay(): void;
  /** Lets all who wait read at once. */
  close(): void;
}

/**
 * Keeps a long read beside buyers to its share of the time: a generic cell rate algorithm whose
 * cells are as long as its parts were. An export that reads page after page takes as much of the
 * processor as it gets. With a fiftieth of the time, it is in the way of too few buyers to move
 * their 99th percentile.
 */
export function createReadPace(clock: Clock = systemClock): ReadPace {
  const closing = new AbortController();
  /** Time at which all reads so far are within their share. */
  let evenAt = Number.NEGATIVE_INFINITY;
  let quietAt = Number.NEGATIVE_INFINITY;

  async function waitForTurn(): Promise<void> {
    const now = clock.now();
    const early = now < quietAt ? evenAt - burstMs - now : 0;
    if (early > 0) await sleep(clock, early, closing.signal).catch(() => undefined);
  }

  function count(began: number): void {
    if (began >= quietAt) return;
    const now = clock.now();
    const even = Math.max(evenAt, began) + (now - began) / share;
    evenAt = Math.min(even, now + burstMs + maxWaitMs);
  }

  return {
    async run(read) {
      await waitForTurn();
      const began = clock.now();
      try {
        return await read();
      } finally {
        count(began);
      }
    },
    giveWay() {
      quietAt = clock.now() + quietMs;
    },
    close: () => closing.abort(),
  };
}
