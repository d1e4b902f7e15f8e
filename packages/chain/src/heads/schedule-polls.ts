import { RpcClosedError } from "../rpc/rpc-errors.ts";
import type { BlockHeader } from "./block-header.ts";
import { pollHead } from "./poll-head.ts";
import type { WatcherContext } from "./watcher-context.ts";

/** Starts, reschedules or stops the polls, by the shortest interval of the subscribers. */
export function reschedulePolls(context: WatcherContext): void {
  const { clock, polledAt } = context;
  const intervalMs = minIntervalMs(context);
  listenToHeads(context, context.subscriptions.size > 0);
  const isWatching = Number.isFinite(intervalMs);
  if (isWatching && !context.isWatching) context.newsAt = clock.now();
  context.isWatching = isWatching;
  schedule(context, (polledAt ?? Number.NEGATIVE_INFINITY) + intervalMs);
}

/** Ends the watch for good. */
export function closeWatch(context: WatcherContext): void {
  context.closing.abort(new RpcClosedError(context.pool.chainId));
  context.subscriptions.clear();
  reschedulePolls(context);
}

/** Sets the time of the next poll in place of the one that is set. */
function schedule(context: WatcherContext, at: number): void {
  const pollAt = context.isWatching ? at : Number.POSITIVE_INFINITY;
  if (context.pollAt === pollAt) return;
  context.cancelTimer?.();
  context.cancelTimer = undefined;
  context.pollAt = pollAt;
  if (pollAt === Number.POSITIVE_INFINITY) return;
  const delayMs = Math.max(0, pollAt - context.clock.now());
  context.cancelTimer = context.clock.setTimer(() => onTimer(context), delayMs);
}

function onTimer(context: WatcherContext): void {
  const { clock } = context;
  context.pollAt = Number.POSITIVE_INFINITY;
  const before = context.window.head();
  // An event has reported a failed poll; only a closed pool is a reason to stop.
  pollHead(context)
    .catch((error) => error instanceof RpcClosedError && closeWatch(context))
    .finally(() => schedule(context, clock.now() + nextDelayMs(context, before)))
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

/** The shortest interval that any subscriber requested; infinite where none requests one. */
export function minIntervalMs({ subscriptions }: WatcherContext): number {
  return Math.min(...[...subscriptions].map(({ pollIntervalMs }) => pollIntervalMs));
}

function listenToHeads(context: WatcherContext, isWanted: boolean): void {
  if (isWanted === (context.stopListening !== undefined)) return;
  context.stopListening?.();
  context.stopListening = isWanted ? context.pool.onNewHead(() => onNewHead(context)) : undefined;
}

function onNewHead(context: WatcherContext): void {
  const { clock, polls } = context;
  context.hintedAt = clock.now();
  // Where all only listen, it is not read. The poll under way may be older than the announcement.
  void polls.idle().then(() => schedule(context, clock.now()));
}
