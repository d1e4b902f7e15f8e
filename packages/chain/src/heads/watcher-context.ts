import type { SingleFlight } from "@coinslot/concurrency";
import type { Clock } from "../clock.ts";
import type { RpcPool } from "../rpc/rpc-pool.ts";
import type { BlockEvent, BlockListener } from "./block-event.ts";
import type { BlockHeader } from "./block-header.ts";
import type { BlockWindow } from "./block-window.ts";

/** A listener, and the longest interval between two polls that it accepts. */
export interface Subscription {
  listener: BlockListener;
  /** Infinite: it receives what others read the chain for. */
  pollIntervalMs: number;
}

/** The parts and the state of one block watcher. */
export interface WatcherContext {
  readonly pool: RpcPool;
  readonly clock: Clock;
  /** The interval of a subscriber that asks for none. */
  readonly pollIntervalMs: number;
  readonly windowSize: number;
  /**
   * Most blocks between two polls that are read. Behind more of them, the known blocks are over.
   */
  readonly maxMissed: number;
  /** Time without an announcement of a new head after which the watcher polls again. */
  readonly silenceMs: number;
  readonly onListenerError: (error: unknown) => void;
  readonly window: BlockWindow;
  readonly subscriptions: Set<Subscription>;
  readonly closing: AbortController;
  /** One poll at a time: all callers share it. */
  readonly polls: SingleFlight<BlockHeader>;
  /** Number of the endpoint that reported the head. */
  headEndpoint: number | undefined;
  /** Time of the last answer of that endpoint. */
  headEndpointAt: number;
  /** That endpoint's word counts for more than another's until it is silent for this long. */
  headEndpointMs: number;
  /** Time at which the last poll ended, successful or not. */
  polledAt: number | undefined;
  /** Time up to which the head was the newest: the last poll that found it began then. */
  readAt: number | undefined;
  /** A head that another process has read, and when it came; `undefined` after an own poll. */
  heard: { head: BlockHeader; at: number } | undefined;
  /** Time of the last change of the head, or of the beginning of the watch. */
  newsAt: number | undefined;
  reachable: boolean;
  /** A subscriber asks for polls. */
  isWatching: boolean;
  /** Time of the next poll, infinite where none is scheduled. */
  pollAt: number;
  cancelTimer: (() => void) | undefined;
  /** Time of the last announcement of a new head. */
  hintedAt: number;
  stopListening: (() => void) | undefined;
}

/** Calls every listener. An error of one is reported, and disturbs no other. */
export function emit(context: WatcherContext, event: BlockEvent): void {
  for (const { listener } of [...context.subscriptions]) {
    try {
      Promise.resolve(listener(event)).catch(context.onListenerError);
    } catch (error) {
      context.onListenerError(error);
    }
  }
}
