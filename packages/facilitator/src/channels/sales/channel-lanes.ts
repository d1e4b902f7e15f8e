import { createMutex, type Mutex, type Release } from "@coinslot/concurrency";

/** The requests of each channel in this process: one runs, the others wait in order of arrival. */
export interface ChannelLanes {
  /**
   * Waits for the channel.
   *
   * @returns its release, to be called once; `undefined` where its queue is full, or the wait was
   * too long
   */
  enter(channelId: string): Promise<Release | undefined>;
  /** Channels with a request. An idle one takes no memory. */
  readonly size: number;
}

interface Lane {
  mutex: Mutex;
  /** Requests that run or wait. */
  count: number;
}

/**
 * Creates the lanes. The released client of the reference signs the same ceiling for requests at
 * once: each of them waits, and is corrected when its turn comes.
 */
export function createChannelLanes({
  maxWaiting = 16,
  maxWaitMs = 10_000,
}: {
  maxWaiting?: number;
  maxWaitMs?: number;
} = {}): ChannelLanes {
  const lanes = new Map<string, Lane>();
  const tooLong = new Error("The channel was busy for too long");

  return {
    async enter(channelId) {
      const lane = lanes.get(channelId) ?? {
        mutex: createMutex({ timeoutMs: maxWaitMs, timeoutError: () => tooLong }),
        count: 0,
      };
      if (lane.count > maxWaiting) return undefined;
      lanes.set(channelId, lane);
      lane.count += 1;
      function leave(): void {
        lane.count -= 1;
        if (lane.count === 0) lanes.delete(channelId);
      }
      try {
        const release = await lane.mutex.acquire();
        return () => {
          release();
          leave();
        };
      } catch (error) {
        leave();
        if (error === tooLong) return undefined;
        throw error;
      }
    },
    get size() {
      return lanes.size;
    },
  };
}
