import { type Clock, sleep, systemClock } from "@coinslot/chain";

/** Share of the time that reads take beside buyers, where they follow one another. */
const share = 0.02;
/** Time by which reads may be ahead of their share: pages for a person do not wait. */
const burstMs = 30_000;
/** Longest pause for one read. Sums over a ledger that is cold can take seconds. */
const maxPauseMs = 2_000;
/** Reads have all the time again once no buyer came for this long. */
const quietMs = 1_000;

/** Pace of reads beside buyers. */
export interface ReadPace {
  /**
   * Reads once it is due. Rejects as `read` does.
   *
   * @param read may call `pause` between its parts, and waits there until the next one is due
   */
  run<Result>(read: (pause: () => Promise<void>) => Promise<Result>): Promise<Result>;
  /** A buyer is here: reads give way. */
  giveWay(): void;
  /** Lets all who wait read at once. */
  close(): void;
}

/**
 * Keeps reads beside buyers to their share of the time: a generic cell rate algorithm whose cells
 * are as long as the reads were. An export that reads page after page takes as much of the
 * processor as it gets. With a fiftieth of the time, it is in the way of too few buyers to move
 * their 99th percentile.
 */
export function createReadPace(clock: Clock = systemClock): ReadPace {
  const closing = new AbortController();
  /** Time at which all reads so far are within their share. */
  let evenAt = Number.NEGATIVE_INFINITY;
  let quietAt = Number.NEGATIVE_INFINITY;

  /** Returns the time at which the read begins. */
  async function waitForTurn(): Promise<number> {
    const now = clock.now();
    const early = now < quietAt ? evenAt - burstMs - now : 0;
    if (early > 0) await sleep(clock, early, closing.signal).catch(() => undefined);
    return clock.now();
  }

  function count(began: number): void {
    if (began >= quietAt) return;
    const took = clock.now() - began;
    const pause = Math.min(took / share - took, maxPauseMs);
    evenAt = Math.max(evenAt, began) + took + pause;
  }

  return {
    async run(read) {
      let began = await waitForTurn();
      const pause = async () => {
        count(began);
        began = await waitForTurn();
      };
      try {
        return await read(pause);
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
