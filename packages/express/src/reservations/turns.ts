import { setTimeout as sleep } from "node:timers/promises";
import { createKeyedMutex } from "@coinslot/concurrency";

/** A request that may have to wait for its turn. */
interface TurnRequest<Result> {
  key: string;
  attempt: () => Promise<Result>;
  mustWait: (result: Result) => boolean;
  /** Returns whether the request may still wait: one that holds a body may not for long. */
  mayWait: () => boolean;
  /** Returns whether the caller has stopped waiting for the result. */
  isGone: () => boolean;
}

/** Lets requests of one key, such as a payer, wait for its running ones, in order of arrival. */
export interface Turns {
  /**
   * Attempts until it need not wait, may not wait, or its patience is over; returns the last
   * result. A request that finds others waiting makes no attempt before its turn.
   *
   * @returns `"gone"`: the caller has left, and no attempt was made since; `"no_place"`: others
   * wait, and this request may not.
   */
  take<Result>(request: TurnRequest<Result>): Promise<Result | "gone" | "no_place">;
}

/** A request behind the first one of its queue. */
interface Waiter extends Pick<TurnRequest<unknown>, "mayWait" | "isGone"> {
  leave(): void;
}

/**
 * Creates one FIFO queue per key. Only the first request of each queue polls. The others wait
 * behind it: a thousand of them cost no more than one. With each poll, those behind it leave whose
 * callers have left. Of those that may not wait any more, the newest leaves. The room that it gives
 * back may be enough for the others. Requests of another process have a queue of their own. The
 * record that both processes ask decides which request is served.
 */
export function createTurns(
  options: { patienceMs?: number; pauseMs?: number; maxWaiting?: number } = {},
): Turns {
  const { patienceMs = 10_000, pauseMs = 50, maxWaiting = 1_000 } = options;
  const queue = createKeyedMutex<string>();
  const waiters = new Map<string, Set<Waiter>>();

  async function poll<Result>(
    { key, attempt, mustWait, mayWait, isGone }: TurnRequest<Result>,
    deadline: number,
  ): Promise<Result | "gone"> {
    for (;;) {
      if (isGone()) return "gone";
      const result = await attempt();
      if (performance.now() >= deadline || !mustWait(result)) return result;
      if (!endWaits(key) && !mayWait()) return result;
      await sleep(pauseMs);
    }
  }

  /** Returns whether a request had to end its wait, so that those before it may go on. */
  function endWaits(key: string): boolean {
    let newest: Waiter | undefined;
    for (const waiter of waiters.get(key) ?? []) {
      if (answerOf(waiter.isGone, false)) waiter.leave();
      else if (!answerOf(waiter.mayWait, true)) newest = waiter;
    }
    newest?.leave();
    return newest !== undefined;
  }

  async function waitForTurn<Result>(
    request: TurnRequest<Result>,
  ): Promise<Result | "gone" | "no_place"> {
    const { key, mayWait, isGone } = request;
    const deadline = performance.now() + patienceMs;
    const leaving = new AbortController();
    const waiter: Waiter = { mayWait, isGone, leave: () => leaving.abort() };
    const others = waiters.get(key) ?? new Set<Waiter>();
    waiters.set(key, others.add(waiter));
    let hasTurn = false;
    const endWait = (): void => {
      hasTurn = true;
      others.delete(waiter);
      if (others.size === 0 && waiters.get(key) === others) waiters.delete(key);
    };
    try {
      const work = (): Promise<Result | "gone"> => {
        endWait();
        return poll(request, deadline);
      };
      return await queue.run(key, work, leaving.signal);
    } catch (error) {
      if (hasTurn) throw error;
      endWait();
      return isGone() ? "gone" : "no_place";
    }
  }

  return {
    async take(request) {
      const { key, attempt, mustWait, mayWait, isGone } = request;
      if (queue.count(key) === 0) {
        if (isGone()) return "gone";
        const result = await attempt();
        if (!mustWait(result) || !mayWait()) return result;
        if (queue.count(key) >= maxWaiting) return result;
      } else if (queue.count(key) >= maxWaiting || !mayWait()) return "no_place";
      return waitForTurn(request);
    },
  };
}

/** A request whose own function throws stays: the first of its queue is not to fail for that. */
function answerOf(question: () => boolean, otherwise: boolean): boolean {
  try {
    return question();
  } catch {
    return otherwise;
  }
}
