import { getChainPreset } from "../chain-presets.ts";
import { type Clock, systemClock } from "../clock.ts";
import { readBlock, readBranch } from "../rpc/read-branch.ts";
import { RpcClosedError } from "../rpc/rpc-errors.ts";
import type { RpcPool } from "../rpc/rpc-pool.ts";
import { type BlockHeader, blockByNumber } from "./block-header.ts";
import { createBlockWindow } from "./block-window.ts";

/** Change of the chain, or of its visibility. Blocks are listed oldest first. */
export type BlockEvent =
  /** New blocks on top of the head; all of them, also those between two polls. */
  | { type: "advanced"; head: BlockHeader; entered: readonly BlockHeader[] }
  /** The newest blocks were replaced by others. */
  | {
      type: "reorganised";
      head: BlockHeader;
      left: readonly BlockHeader[];
      entered: readonly BlockHeader[];
    }
  /** A head without a link to the known blocks. Subscribers must reconcile with the chain. */
  | { type: "reset"; head: BlockHeader; reason: "missed-blocks" | "deep-reorganisation" }
  /** The head could not be read. One event per outage. */
  | { type: "unreachable"; error: unknown }
  /** The first answer after an outage. Events for the blocks in between follow. */
  | { type: "reachable" };

export interface BlockWatcherOptions {
  pool: RpcPool;
  /** Default: the chain's preset. A subscriber may ask for a shorter one. */
  pollIntervalMs?: number;
  /** Number of remembered blocks, to recognise a reorganisation and to fill a gap. Default 128. */
  windowSize?: number;
  /** Age of a stalled head. Default: ten block times, at least 15 s; never for blocks on demand. */
  stalledAfterMs?: number;
  /** Receives errors that a subscriber threw. Default: a process warning. */
  onListenerError?: (error: unknown) => void;
  clock?: Clock;
}

export type BlockListener = (event: BlockEvent) => void | Promise<void>;

export interface BlockWatcherStatus {
  head: BlockHeader | undefined;
  /** Number of the endpoint that reported the head. */
  endpoint: number | undefined;
  /** Time since the head changed, or watching began. On this process's clock: immune to skew. */
  sinceNewHeadMs: number | undefined;
  watching: boolean;
  reachable: boolean;
  stalled: boolean;
  subscribers: number;
}

export interface BlockWatcher {
  /** The last known head, without a request. */
  latest(): BlockHeader | undefined;
  /** Polls now, or joins a poll under way. Rejects with what the pool throws. */
  refresh(): Promise<BlockHeader>;
  /** Calls `listener` for every later event. Returns the unsubscribe function. */
  subscribe(listener: BlockListener, options?: { pollIntervalMs?: number }): () => void;
  /**
   * Resolves to the head once its number is at least `number`. Rejects on abort and on `close()`.
   */
  waitForBlock(
    number: bigint,
    options?: { signal?: AbortSignal; pollIntervalMs?: number },
  ): Promise<BlockHeader>;
  status(): BlockWatcherStatus;
  close(): void;
}

/**
 * Watches the head of one chain for the whole process: create one watcher per network. While it has
 * subscribers, it reads the chain at each WebSocket notification of a new head. Without such
 * notifications it polls, at the shortest interval that any subscriber requested.
 *
 * An old head from a lagging endpoint changes nothing. A different block at a known height is
 * accepted from the endpoint that reported the current head. Another endpoint must show a longer
 * chain.
 *
 * @example
 * ```ts
 * const watcher = createBlockWatcher({ pool });
 * const unsubscribe = watcher.subscribe((event) => console.log(event.type));
 * const head = await watcher.refresh();
 * await watcher.waitForBlock(head.number + 3n);
 * unsubscribe();
 * ```
 */
export function createBlockWatcher(options: BlockWatcherOptions): BlockWatcher {
  const { pool, windowSize = 128, clock = systemClock } = options;
  const preset = getChainPreset(pool.chainId);
  const pollIntervalMs = options.pollIntervalMs ?? preset.pollIntervalMs;
  const stalledAfterMs =
    options.stalledAfterMs ??
    (preset.blockTimeMs === undefined
      ? Number.POSITIVE_INFINITY
      : Math.max(15_000, 10 * preset.blockTimeMs));
  const window = createBlockWindow(windowSize);
  const subscriptions = new Set<{ listener: BlockListener; pollIntervalMs: number }>();
  const closing = new AbortController();
  let headEndpoint: number | undefined;
  let newsAt: number | undefined;
  let reachable = true;
  let polling: Promise<BlockHeader> | undefined;
  let cancelTimer: (() => void) | undefined;
  let pollAt = Number.POSITIVE_INFINITY;
  let hintedAt = Number.NEGATIVE_INFINITY;
  let stopListening: (() => void) | undefined;
  const silenceMs = Math.max(2_000, 3 * (preset.blockTimeMs ?? 0));

  function reportListenerError(error: unknown) {
    if (options.onListenerError) options.onListenerError(error);
    else process.emitWarning(error instanceof Error ? error : String(error));
  }

  function emit(event: BlockEvent) {
    for (const { listener } of [...subscriptions]) {
      try {
        Promise.resolve(listener(event)).catch(reportListenerError);
      } catch (error) {
        reportListenerError(error);
      }
    }
  }

  /** Reads the head, and the blocks since the window's, at one endpoint. Undefined: no change. */
  function look(): Promise<BlockEvent | undefined> {
    return pool.onEndpoint(async (endpoint) => {
      const latest = await readBlock(endpoint, blockByNumber("latest"));
      const head = window.head();
      if (window.has(latest.hash)) return undefined;
      const isOther = headEndpoint !== undefined && headEndpoint !== endpoint.endpoint;
      if (head && latest.number <= head.number && isOther) return undefined;
      const branch = await readBranch(endpoint, window, latest, windowSize);
      const left = window.put(branch ?? [latest]);
      headEndpoint = endpoint.endpoint;
      newsAt = clock.now();
      if (!head) return { type: "advanced", head: latest, entered: [latest] };
      if (!branch) {
        const missed = latest.number - head.number > BigInt(windowSize);
        const reason = missed ? "missed-blocks" : "deep-reorganisation";
        return { type: "reset", head: latest, reason };
      }
      if (left.length === 0) return { type: "advanced", head: latest, entered: branch };
      return { type: "reorganised", head: latest, left, entered: branch };
    });
  }

  async function pollOnce(): Promise<BlockHeader> {
    try {
      const event = await look();
      if (!reachable) {
        reachable = true;
        emit({ type: "reachable" });
      }
      if (event) emit(event);
    } catch (error) {
      if (reachable && !(error instanceof RpcClosedError)) {
        reachable = false;
        emit({ type: "unreachable", error });
      }
      throw error;
    }
    const head = window.head();
    if (!head) throw new TypeError("a look at the chain left no head");
    return head;
  }

  function refresh(): Promise<BlockHeader> {
    if (closing.signal.aborted) return Promise.reject(closing.signal.reason);
    polling ??= pollOnce().finally(() => {
      polling = undefined;
    });
    return polling;
  }

  /** Schedules the next poll, unless an earlier one is set: a new subscriber never delays it. */
  function schedule(delayMs: number) {
    const wished = clock.now() + delayMs;
    if (pollAt <= wished) return;
    cancelTimer?.();
    pollAt = wished;
    cancelTimer = clock.setTimer(() => {
      pollAt = Number.POSITIVE_INFINITY;
      // An event has reported a failed poll; only a closed pool is a reason to stop.
      const before = window.head();
      refresh()
        .catch((error) => error instanceof RpcClosedError && close())
        .finally(() => subscriptions.size > 0 && schedule(nextDelayMs(before)))
        .catch(reportListenerError);
    }, delayMs);
  }

  /**
   * Delay until the next poll. While nodes announce new heads, and those are found, it is at least
   * `silenceMs`. A node may fall silent, and the node that is read may lag behind the one that
   * announces: the watcher then polls.
   */
  function nextDelayMs(before: BlockHeader | undefined): number {
    const isTold = clock.now() - hintedAt < silenceMs && window.head() !== before;
    return isTold ? Math.max(silenceMs, minIntervalMs()) : minIntervalMs();
  }

  function onNewHead(): void {
    hintedAt = clock.now();
    // The read under way may be older than the announcement.
    const read = polling?.then(
      () => undefined,
      () => undefined,
    );
    void Promise.resolve(read).then(() => subscriptions.size > 0 && schedule(0));
  }

  function minIntervalMs() {
    return Math.min(...[...subscriptions].map((subscription) => subscription.pollIntervalMs));
  }

  function subscribe(listener: BlockListener, wish: { pollIntervalMs?: number } = {}) {
    const subscription = {
      listener,
      pollIntervalMs: Math.min(wish.pollIntervalMs ?? pollIntervalMs, pollIntervalMs),
    };
    if (closing.signal.aborted) return () => undefined;
    const isFirst = subscriptions.size === 0;
    subscriptions.add(subscription);
    if (isFirst) {
      newsAt = clock.now();
      stopListening = pool.onNewHead(onNewHead);
    }
    schedule(isFirst ? 0 : minIntervalMs());
    return () => {
      if (subscriptions.delete(subscription) && subscriptions.size === 0) unschedule();
    };
  }

  function unschedule() {
    stopListening?.();
    stopListening = undefined;
    cancelTimer?.();
    pollAt = Number.POSITIVE_INFINITY;
  }

  function close() {
    closing.abort(new RpcClosedError(pool.chainId));
    subscriptions.clear();
    unschedule();
  }

  return {
    latest: window.head,
    refresh,
    subscribe,
    waitForBlock(number, { signal, pollIntervalMs: wish } = {}) {
      const sources = signal ? [signal, closing.signal] : [closing.signal];
      return new Promise((resolve, reject) => {
        const known = window.head();
        if (known && known.number >= number) return resolve(known);
        for (const source of sources) if (source.aborted) return reject(source.reason);
        const unsubscribe = subscribe(
          (event) => {
            if (!("head" in event) || event.head.number < number) return;
            finish();
            resolve(event.head);
          },
          wish === undefined ? {} : { pollIntervalMs: wish },
        );
        function onAbort() {
          finish();
          reject(sources.find((source) => source.aborted)?.reason);
        }
        function finish() {
          unsubscribe();
          for (const source of sources) source.removeEventListener("abort", onAbort);
        }
        for (const source of sources) source.addEventListener("abort", onAbort, { once: true });
      });
    },
    status() {
      const watching = subscriptions.size > 0;
      const sinceNewHeadMs = newsAt === undefined ? undefined : clock.now() - newsAt;
      return {
        head: window.head(),
        endpoint: headEndpoint,
        sinceNewHeadMs,
        watching,
        reachable,
        stalled: watching && sinceNewHeadMs !== undefined && sinceNewHeadMs > stalledAfterMs,
        subscribers: subscriptions.size,
      };
    },
    close,
  };
}
