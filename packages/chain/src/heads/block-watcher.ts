import { createSingleFlight } from "@coinslot/concurrency";
import { getChainPreset } from "../chain-presets.ts";
import { type Clock, systemClock } from "../clock.ts";
import type { RpcPool } from "../rpc/rpc-pool.ts";
import type { BlockListener } from "./block-event.ts";
import type { BlockHeader } from "./block-header.ts";
import { createBlockWindow } from "./block-window.ts";
import { pollHead, pollOnce } from "./poll-head.ts";
import { closeWatch, minIntervalMs, reschedulePolls } from "./schedule-polls.ts";
import type { WatcherContext } from "./watcher-context.ts";

export interface BlockWatcherOptions {
  pool: RpcPool;
  /** Default: the chain's preset. A subscriber may ask for another one. */
  pollIntervalMs?: number;
  /** Number of remembered blocks, to recognise a reorganisation. Default 128. */
  windowSize?: number;
  /**
   * Blocks between two polls that are read, at most. Behind more of them the watch begins anew,
   * with a `reset`. Default: as many as are remembered.
   */
  maxMissed?: number;
  /** Age of a stalled head. Default: ten block times, at least 15 s; never for blocks on demand. */
  stalledAfterMs?: number;
  /** Receives errors that a subscriber threw. Default: a process warning. */
  onListenerError?: (error: unknown) => void;
  clock?: Clock;
}

export interface BlockWatcherStatus {
  head: BlockHeader | undefined;
  /** Number of the endpoint that reported the head. */
  endpoint: number | undefined;
  /** Time since the head was found to be the newest, here or elsewhere; `undefined` before. */
  sinceReadMs: number | undefined;
  /** Time since the head changed, or watching began. On this process's clock: immune to skew. */
  sinceNewHeadMs: number | undefined;
  watching: boolean;
  reachable: boolean;
  stalled: boolean;
  subscribers: number;
}

export interface BlockWatcher {
  /** The last known head, read here or by another process, without a request. */
  latest(): BlockHeader | undefined;
  /** Polls now, or joins a poll under way. Rejects with what the pool throws. */
  refresh(): Promise<BlockHeader>;
  /** The head as it was at most `maxAgeMs` ago: the known one, or as `refresh`. */
  fresh(maxAgeMs: number): Promise<BlockHeader>;
  /** As `fresh`, of what this process has read itself: for decisions that a wrong head spoils. */
  read(maxAgeMs: number): Promise<BlockHeader>;
  /**
   * Takes over a head that another process of the same operator has read. It serves `latest` and
   * `fresh` until the next poll. Its blocks are compared with no others, and cause no event.
   */
  learn(head: BlockHeader): void;
  /**
   * Calls `listener` for every later event. Returns the unsubscribe function. With an infinite
   * `pollIntervalMs` it only listens, and the chain is not read for it.
   */
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

/** No chain's head is called stalled before this, nor its endpoint silent. */
const minStalledMs = 15_000;

/**
 * Watches the head of one chain for the whole process: create one watcher per network. While it has
 * subscribers, it reads the chain at each WebSocket notification of a new head. Without such
 * notifications it polls, at the shortest interval that any subscriber requested.
 *
 * An old head from a lagging endpoint changes nothing. A different block at a known height is
 * accepted from the endpoint that reported the current head. Another endpoint must show a longer
 * chain. That ends when the first one is silent for ten block times, at least 15 s: its head may be
 * false.
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
  const context = createContext(options);
  const { clock } = context;
  const stalledAfterMs = options.stalledAfterMs ?? stalledAfter(options.pool.chainId);
  return {
    latest: () => newest(context)?.head,
    refresh: () => pollHead(context),
    fresh: (maxAgeMs) => readAgain(context, newest(context), maxAgeMs),
    read: (maxAgeMs) => readAgain(context, ownHead(context), maxAgeMs),
    learn(head) {
      context.heard = { head, at: clock.now() };
    },
    subscribe: (listener, wish) => subscribe(context, listener, wish),
    waitForBlock: (number, wish) => waitForBlock(context, number, wish),
    status: () => readStatus(context, stalledAfterMs),
    close: () => closeWatch(context),
  };
}

function createContext(options: BlockWatcherOptions): WatcherContext {
  const { pool, windowSize = 128, clock = systemClock } = options;
  const preset = getChainPreset(pool.chainId);
  const context: WatcherContext = {
    pool,
    clock,
    pollIntervalMs: options.pollIntervalMs ?? preset.pollIntervalMs,
    windowSize,
    maxMissed: options.maxMissed ?? windowSize,
    silenceMs: Math.max(2_000, 3 * (preset.blockTimeMs ?? 0)),
    onListenerError: options.onListenerError ?? warn,
    window: createBlockWindow(windowSize),
    subscriptions: new Set(),
    closing: new AbortController(),
    polls: createSingleFlight(() => pollOnce(context)),
    headEndpoint: undefined,
    headEndpointAt: Number.NEGATIVE_INFINITY,
    headEndpointMs: Math.max(minStalledMs, 10 * (preset.blockTimeMs ?? 0)),
    polledAt: undefined,
    readAt: undefined,
    heard: undefined,
    newsAt: undefined,
    reachable: true,
    isWatching: false,
    pollAt: Number.POSITIVE_INFINITY,
    cancelTimer: undefined,
    hintedAt: Number.NEGATIVE_INFINITY,
    stopListening: undefined,
  };
  return context;
}

function stalledAfter(chainId: number): number {
  const { blockTimeMs } = getChainPreset(chainId);
  if (blockTimeMs === undefined) return Number.POSITIVE_INFINITY;
  return Math.max(minStalledMs, 10 * blockTimeMs);
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}

function subscribe(
  context: WatcherContext,
  listener: BlockListener,
  wish: { pollIntervalMs?: number } = {},
): () => void {
  const { subscriptions } = context;
  if (context.closing.signal.aborted) return () => undefined;
  const { pollIntervalMs = context.pollIntervalMs } = wish;
  const subscription = { listener, pollIntervalMs };
  subscriptions.add(subscription);
  reschedulePolls(context);
  return () => {
    if (subscriptions.delete(subscription)) reschedulePolls(context);
  };
}

function waitForBlock(
  context: WatcherContext,
  number: bigint,
  wish: { signal?: AbortSignal; pollIntervalMs?: number } = {},
): Promise<BlockHeader> {
  const { signal, ...interval } = wish;
  const sources = signal ? [signal, context.closing.signal] : [context.closing.signal];
  return new Promise((resolve, reject) => {
    const known = context.window.head();
    if (known && known.number >= number) return resolve(known);
    for (const source of sources) if (source.aborted) return reject(source.reason);
    const unsubscribe = subscribe(
      context,
      (event) => {
        if (!("head" in event) || event.head.number < number) return;
        finish();
        resolve(event.head);
      },
      interval,
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
}

/** A head, and the time up to which it was the newest. */
interface DatedHead {
  head: BlockHeader;
  at: number;
}

function ownHead({ window, readAt }: WatcherContext): DatedHead | undefined {
  const head = window.head();
  return head === undefined || readAt === undefined ? undefined : { head, at: readAt };
}

function newest(context: WatcherContext): DatedHead | undefined {
  return context.heard ?? ownHead(context);
}

async function readAgain(
  context: WatcherContext,
  known: DatedHead | undefined,
  maxAgeMs: number,
): Promise<BlockHeader> {
  const isFresh = known !== undefined && context.clock.now() - known.at <= maxAgeMs;
  return isFresh ? known.head : pollHead(context);
}

function readStatus(context: WatcherContext, stalledAfterMs: number): BlockWatcherStatus {
  const { clock, newsAt, reachable, subscriptions, headEndpoint } = context;
  const known = newest(context);
  const { isWatching: watching } = context;
  const sinceNewHeadMs = newsAt === undefined ? undefined : clock.now() - newsAt;
  return {
    head: known?.head,
    endpoint: headEndpoint,
    sinceReadMs: known && clock.now() - known.at,
    sinceNewHeadMs,
    watching,
    reachable,
    // Less often read, a block is found later.
    stalled:
      watching &&
      sinceNewHeadMs !== undefined &&
      sinceNewHeadMs > Math.max(stalledAfterMs, 2 * minIntervalMs(context)),
    subscribers: subscriptions.size,
  };
}
