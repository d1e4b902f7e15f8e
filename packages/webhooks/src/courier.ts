import { createBatcher, createSingleFlight } from "@coinslot/concurrency";
import { attemptDelivery, type WebhookTarget } from "./attempt-delivery.ts";
import { retryDelayMs } from "./retry-delays.ts";
import { webhookBodyOf, webhookIdOf } from "./webhook-body.ts";

/** An event that the queue has given to this process, for a time. */
export interface QueuedWebhook {
  seq: number;
  /** The same in every attempt: the receiver drops duplicates by it. */
  id: string;
  key: string;
  type: string;
  /** JSON, an object. */
  payload: string;
  createdAt: number;
  /** Attempts that have failed. */
  attempts: number;
}

/** The end of an attempt. `released`: it was not posted, and counts as none. */
export type WebhookConclusion = { seq: number; key: string } & (
  | { outcome: "delivered" | "released" }
  | { outcome: "failed"; error: string; retryInMs: number }
  | { outcome: "dead"; error: string }
);

/** The outbox of one endpoint, which orders the events of a key, and fences processes. */
export interface WebhookQueue {
  /** Gives events that are due, of each key the first one. */
  claim(limit: number): Promise<{ deliveries: QueuedWebhook[]; mayBeMore: boolean }>;
  /** Ends claims. Resolves with the numbers of those that were still held. */
  conclude(conclusions: readonly WebhookConclusion[]): Promise<number[]>;
}

export interface CourierOptions {
  queue: WebhookQueue;
  target: WebhookTarget;
  /** Time for which a claim holds, less that of a POST: an event is not posted after it. */
  freshMs: number;
  /** Concurrent deliveries. Default 64. */
  maxInFlight?: number | undefined;
  /** Pause between two looks into a queue at rest. Default 1,000. */
  pollMs?: number | undefined;
  /** Monotonic milliseconds, and timers. */
  clock: { now(): number; setTimer(run: () => void, delayMs: number): () => void };
  /** Unix milliseconds, for signatures. */
  now: () => number;
  /** From 0 to 1. Default `Math.random`. */
  random?: (() => number) | undefined;
  onConcluded: (conclusion: WebhookConclusion) => void;
  /** Faults of the queue. They are tried again. */
  onError: (error: unknown) => void;
}

export interface Courier {
  /** Looks into the queue now. */
  wake(): void;
  /** Claims nothing more, and waits for deliveries under way, at most for so long. */
  stop(options: { graceMs: number }): Promise<void>;
}

/**
 * Delivers the events of one endpoint.
 *
 * ```text
 *              due              2xx, or the last failure
 *   queue ───────────► posting ─────────────────────────► concluded
 *     ▲                  │
 *     └── wait, end of ──┘ another failure
 *         the claim
 * ```
 *
 * An endpoint has a courier and deliveries of its own, so one that hangs delays no other.
 */
export function startCourier(options: CourierOptions): Courier {
  const { queue, target, freshMs, clock, onConcluded, onError } = options;
  const { maxInFlight = 64, pollMs = 1_000, random = Math.random } = options;
  const posting = new Set<Promise<void>>();
  let isStopped = false;
  let isDue = false;
  let cancelTimer: (() => void) | undefined;

  const conclude = createBatcher(concludeAll, { maxItems: 4 * maxInFlight });

  async function concludeAll(conclusions: readonly WebhookConclusion[]): Promise<undefined[]> {
    try {
      const held = new Set(await queue.conclude(conclusions));
      for (const each of conclusions) if (held.has(each.seq)) onConcluded(each);
    } catch (error) {
      // Their claims end by themselves: they are delivered again.
      onError(error);
    }
    return conclusions.map(() => undefined);
  }

  const looking = createSingleFlight(async () => {
    cancelTimer?.();
    try {
      while (!isStopped && hasRoom()) {
        isDue = false;
        const limit = maxInFlight - posting.size;
        const claimedAt = clock.now();
        const { deliveries, mayBeMore } = await queue.claim(limit);
        for (const delivery of deliveries) begin(delivery, claimedAt);
        if (!mayBeMore) break;
      }
    } catch (error) {
      onError(error);
    }
    if (!isStopped) cancelTimer = clock.setTimer(lookAgain, pollMs);
  });

  function lookAgain(): void {
    isDue = true;
    looking.trigger();
  }

  /** Few places are not worth a claim, except once in each pause. */
  function hasRoom(): boolean {
    const room = maxInFlight - posting.size;
    return isDue ? room > 0 : room >= maxInFlight / 4;
  }

  function begin(delivery: QueuedWebhook, claimedAt: number): void {
    const run = deliver(delivery, claimedAt)
      .catch(onError)
      .finally(() => {
        posting.delete(run);
        if (hasRoom()) looking.trigger();
      });
    posting.add(run);
  }

  async function deliver(delivery: QueuedWebhook, claimedAt: number): Promise<void> {
    const { seq, key } = delivery;
    // A process that was frozen has lost its claim by now.
    if (isStopped || clock.now() - claimedAt > freshMs) {
      await conclude({ seq, key, outcome: "released" });
      return;
    }
    const body = webhookBodyOf(delivery);
    const result = await attemptDelivery(target, {
      id: webhookIdOf(delivery),
      body,
      nowMs: options.now(),
    });
    await conclude({ seq, key, ...conclusionOf(delivery, result) });
  }

  function conclusionOf(
    { attempts }: QueuedWebhook,
    result: Awaited<ReturnType<typeof attemptDelivery>>,
  ) {
    if (result.outcome === "delivered") return result;
    const { error } = result;
    const retryInMs = retryDelayMs(attempts + 1, random());
    return retryInMs === undefined
      ? ({ outcome: "dead", error } as const)
      : ({ outcome: "failed", error, retryInMs } as const);
  }

  looking.trigger();
  return {
    wake: lookAgain,
    async stop({ graceMs }) {
      isStopped = true;
      cancelTimer?.();
      await looking.stop();
      cancelTimer?.();
      let cancel: (() => void) | undefined;
      const late = new Promise<void>((resolve) => {
        cancel = clock.setTimer(resolve, graceMs);
      });
      await Promise.race([Promise.all(posting), late]);
      cancel?.();
    },
  };
}
