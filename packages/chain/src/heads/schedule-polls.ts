import { RpcClosedError } from "../rpc/rpc-errors.ts";
import type { BlockHeader } from "./block-header.ts";
import { pollHead } from "./poll-head.ts";
import type { WatcherContext } from "./watcher-context.ts";

/** Begins to poll, and to listen to announcements of new heads. */
export function startPolls(context: WatcherContext): void {
  context.newsAt = context.clock.now();
  context.stopListening = context.pool.onNewHead(() => onNewHead(context));
  schedulePoll(context, 0);
}

export function stopPolls(context: WatcherContext): void {
  context.stopListening?.();
  context.stopListening = undefined;
  context.cancelTimer?.();
  context.pollAt = Number.POSITIVE_INFINITY;
}

/** Ends the watch for good. */
export function closeWatch(context: WatcherContext): void {
  context.closing.abort(new RpcClosedError(context.pool.chainId));
  context.subscriptions.clear();
  stopPolls(context);
}

/** Schedules the next poll, unless an earlier one is set: a new subscriber never delays it. */
export function schedulePoll(context: WatcherContext, delayMs: number): void {
  const wished = context.clock.now() + delayMs;
  if (context.pollAt <= wished) return;
  context.cancelTimer?.();
  context.pollAt = wished;
  context.cancelTimer = context.clock.setTimer(() => onTimer(context), delayMs);
}

function onTimer(context: WatcherContext): void {
  context.pollAt = Number.POSITIVE_INFINITY;
  const before = context.window.head();
  // An event has reported a failed poll; only a closed pool is a reason to stop.
  pollHead(context)
    .catch((error) => error instanceof RpcClosedError && closeWatch(context))
    .finally(
      () => context.subscriptions.size > 0 && schedulePoll(context, nextDelayMs(context, before)),
    )
    .catch(context.onListenerError);
}

/**
 * Delay until the next poll. While nodes announce new heads, and those are found, it is at least
 * `silenceMs`. A node may fall silent, and the one that is read may lag behind the one that
 * announces. The watcher then polls.
 */
function nextDelayMs(context: WatcherContext, before: BlockHeader | undefined): number {
  const { clock, hintedAt, silenceMs, window } = context;
  const isAnnounced = clock.now() - hintedAt < silenceMs && window.head() !== before;
  return isAnnounced ? Math.max(silenceMs, minIntervalMs(context)) : minIntervalMs(context);
}

/** The shortest interval that any subscriber requested. */
export function minIntervalMs({ subscriptions }: WatcherContext): number {
  return Math.min(...[...subscriptions].map(({ pollIntervalMs }) => pollIntervalMs));
}

function onNewHead(context: WatcherContext): void {
  const { clock, polls, subscriptions } = context;
  context.hintedAt = clock.now();
  // The poll under way may be older than the announcement.
  void polls.idle().then(() => subscriptions.size > 0 && schedulePoll(context, 0));
}
