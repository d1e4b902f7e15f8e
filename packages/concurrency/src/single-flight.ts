/** A task of which one run exists at a time, shared by its callers. */
export interface SingleFlight<Result = void> {
  /** The run under way, which has begun before this call; without one, a new run. */
  join(): Promise<Result>;
  /** A run that begins after this call: now, or when the run under way has ended. */
  next(): Promise<Result>;
  /**
   * As `next`, without a promise. During a run it allocates nothing. A task that fails then is an
   * unhandled rejection.
   */
  trigger(): void;
  /** Resolves when the run under way, and the one that `next` promised, are over. Starts none. */
  idle(): Promise<void>;
  /** Ends the effect of `trigger`. Resolves when the last run is over. */
  stop(): Promise<void>;
}

/**
 * Creates a task with many callers that never runs concurrently with itself.
 *
 * ```text
 *          join, next, trigger              next, trigger
 *   idle ──────────────────────► running ─────────────────► running, another run is due
 *    ▲                            │   ▲                                │
 *    └────────── end ─────────────┘   └───────────── end ──────────────┘
 * ```
 *
 * | Race | Why it is safe |
 * |---|---|
 * | A caller of `next`, and a run that has already read what the caller wrote about | Its run is the one after that |
 * | Many callers of `next` during a run | They share the one run after it, so that load makes no queue |
 * | The end of a run, and a caller before the run that is due has begun | Until it begins, every caller shares the due run |
 * | `stop`, and a trigger during the last run | The trigger has no effect; promised runs (`next`) still happen |
 */
export function createSingleFlight<Result>(task: () => Promise<Result>): SingleFlight<Result> {
  let running: Promise<Result> | undefined;
  let due: Promise<Result> | undefined;
  let isTriggered = false;
  let isStopped = false;

  function start(): Promise<Result> {
    isTriggered = false;
    running = task().then(ended, failed);
    return running;
  }

  function ended(result: Result): Result {
    leave();
    return result;
  }

  function failed(error: unknown): never {
    leave();
    throw error;
  }

  function leave(): void {
    running = undefined;
    // A due run serves the triggers, too.
    if (isTriggered && due === undefined && !isStopped) void start();
  }

  function startDue(): Promise<Result> {
    due = undefined;
    return start();
  }

  async function idle(): Promise<void> {
    await Promise.allSettled([due ?? running]);
  }

  return {
    join: () => running ?? due ?? start(),
    next() {
      if (due === undefined) {
        if (running === undefined) return start();
        due = running.then(startDue, startDue);
      }
      return due;
    },
    trigger() {
      if (isStopped) return;
      if (running === undefined && due === undefined) void start();
      else isTriggered = true;
    },
    idle,
    stop() {
      isStopped = true;
      return idle();
    },
  };
}

/**
 * Runs `action` once, and shares its result for ever. A failure is forgotten: the next call tries
 * again.
 */
export function onceSuccessful<Result>(action: () => Promise<Result>): () => Promise<Result> {
  let run: Promise<Result> | undefined;
  return function runOnce() {
    run ??= action().catch((error: unknown) => {
      run = undefined;
      throw error;
    });
    return run;
  };
}
