import type { Clock } from "@coinslot/chain";
import type { ChannelKey } from "../../ledger/channels/channel.ts";
import { releaseRun } from "../../ledger/channels/reserve-run.ts";
import type { LedgerContext } from "../../ledger/ledger-context.ts";
import type { Logger } from "../../logger.ts";

/**
 * Channels whose reserved run this process keeps from one request to the next, so that none
 * reserves for itself. Only those whose requests all come to this process; a SQLite ledger needs
 * none.
 */
export interface ChannelLeases {
  /**
   * Counts a purchase.
   *
   * @param isOwn the charge before it was made here
   * @returns whether its token is to be kept
   */
  isWorth(channelId: string, isOwn: boolean): boolean;
  /** Takes a channel's token out, for a request of it. Waits for a release that is under way. */
  take(channelId: string): Promise<string | undefined>;
  /** Puts a token back that the row still has. */
  keep(key: ChannelKey, token: string): void;
  /** Releases all, and keeps no more. */
  close(): Promise<void>;
}

/** Consecutive purchases at one process, after which the channel is its own. */
const minStreak = 8;
/** Channels whose purchases are counted. */
const maxStreaks = 10_000;
/** A token that no request has taken for this long is released: another process may wait for it. */
const idleMs = 500;

export function createChannelLeases({
  ledger,
  clock,
  logger,
}: {
  ledger: LedgerContext;
  clock: Clock;
  logger: Logger;
}): ChannelLeases {
  const streaks = new Map<string, number>();
  const kept = new Map<string, { key: ChannelKey; token: string; since: number }>();
  const releasing = new Map<string, Promise<void>>();
  let cancel: (() => void) | undefined;
  let isClosed = false;

  function schedule(): void {
    if (isClosed || cancel !== undefined || kept.size === 0) return;
    cancel = clock.setTimer(() => {
      cancel = undefined;
      const before = clock.now() - idleMs;
      for (const { key, since } of kept.values()) if (since <= before) void release(key);
      schedule();
    }, idleMs / 2);
  }

  /** Never rejects: a token that could not be written off is written again, by the retry queue. */
  function release(key: ChannelKey): Promise<void> {
    const { channelId } = key;
    const lease = kept.get(channelId);
    kept.delete(channelId);
    if (lease === undefined) return releasing.get(channelId) ?? Promise.resolve();
    const { token } = lease;
    const released = ledger.pendingEnds
      .write(token, () => releaseRun(ledger, { ...key, token }))
      .catch((err: unknown) => logger.warn({ err }, "a reserved channel was not released"))
      .then(() => void releasing.delete(channelId));
    releasing.set(channelId, released);
    return released;
  }

  return {
    isWorth(channelId, isOwn) {
      if (isClosed || ledger.dialect.engine === "sqlite") return false;
      const streak = isOwn ? (streaks.get(channelId) ?? 0) + 1 : 0;
      streaks.delete(channelId);
      streaks.set(channelId, streak);
      const [oldest] = streaks.keys();
      if (streaks.size > maxStreaks && oldest !== undefined) streaks.delete(oldest);
      return streak >= minStreak;
    },
    async take(channelId) {
      await releasing.get(channelId);
      const lease = kept.get(channelId);
      kept.delete(channelId);
      return lease?.token;
    },
    keep(key, token) {
      kept.set(key.channelId, { key, token, since: clock.now() });
      if (isClosed) void release(key);
      else schedule();
    },
    async close() {
      isClosed = true;
      cancel?.();
      for (const { key } of kept.values()) void release(key);
      await Promise.all(releasing.values());
    },
  };
}
