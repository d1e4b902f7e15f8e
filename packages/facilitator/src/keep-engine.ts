import { type Clock, sleep } from "@coinslot/chain";
import { FacilitatorError } from "@coinslot/protocol";
import type { LedgerHealth } from "./ready/ledger-health.ts";

/** The engine of a facilitator, which is another one after a restore of its ledger. */
export interface KeptEngine<Engine> {
  /**
   * The engine.
   *
   * @throws FacilitatorError while its ledger is opened anew. Rejects as its first start did.
   */
  current(): Promise<Engine>;
  /** False for a former engine: its ledger is closed, or about to be. */
  isWorking(engine: Engine): boolean;
  close(): Promise<void>;
}

/** Pause between two attempts to open a ledger anew. */
const pauseMs = 1_000;

/**
 * Starts an engine. Starts another one in its place when it reports that its ledger was replaced.
 *
 * A process knows more than its ledger's rows: which leases and reservations are its own, ids of
 * sold things, transactions in flight. After a restore none of that is known to be true. So the
 * process does what a restart would do: it drops everything, and joins the ledger under a new name,
 * which no row has. Then its former reservations end as those of a dead process, and its former
 * leases, whatever their epochs, guard nothing.
 *
 * ```text
 *                 onReplaced             closed, or late    start
 *   working ───────────────────► closing ─────────────────────► working
 *                                   │  ▲ failed: after a pause
 *                                   └──┘
 * ```
 *
 * @param options `start`: starts an engine; `isAnew` for all but the first. `patienceMs`: wait for
 * the end of a former one
 */
export function keepEngine<Engine extends { close(): Promise<void> }>(options: {
  start: (options: { isAnew: boolean; onReplaced: (reason: unknown) => void }) => Promise<Engine>;
  health: LedgerHealth;
  clock: Clock;
  patienceMs: number;
}): KeptEngine<Engine> {
  const { start, health, clock, patienceMs } = options;
  const closing = new AbortController();
  let reopening: Promise<void> | undefined;
  let working: Engine | undefined;
  let current = begin({ isAnew: false });
  current.starting.then(
    (engine) => {
      working = engine;
    },
    // `ready` and every method reject with it; there may be no caller.
    () => undefined,
  );

  function begin({ isAnew }: { isAnew: boolean }): Attempt<Engine> {
    const attempt: Attempt<Engine> = {
      isReplaced: false,
      starting: start({
        isAnew,
        // Also while it starts.
        onReplaced(reason) {
          if (closing.signal.aborted) return;
          attempt.isReplaced = true;
          health.failed(reason);
          reopening ??= reopen();
        },
      }),
    };
    return attempt;
  }

  /** Its end and its last look at the engine are one step: no report falls in between. */
  async function reopen(): Promise<void> {
    try {
      while (current.isReplaced && !closing.signal.aborted) {
        const former = await current.starting.catch(() => undefined);
        // Its start has failed, and ended what it had begun.
        if (former === undefined) return;
        working = undefined;
        await leave(former);
        await startAgain();
      }
    } finally {
      reopening = undefined;
    }
  }

  /**
   * Waits for the end of an engine, for a time. After that, other processes count it as dead, too.
   * Its guards name its own leases and reservations. Of a SQLite file, its lock decides.
   */
  async function leave(former: Engine): Promise<void> {
    const waiting = new AbortController();
    const ended = former.close().catch((err: unknown) => {
      health.logger.warn({ err }, "the former engine left its ledger as it was");
    });
    const late = sleep(clock, patienceMs, waiting.signal).then(
      () => health.logger.warn({}, "the former engine does not end; going on beside it"),
      () => undefined,
    );
    await Promise.race([ended, late]);
    waiting.abort();
  }

  async function startAgain(): Promise<void> {
    while (!closing.signal.aborted) {
      const next = begin({ isAnew: true });
      try {
        working = await next.starting;
        current = next;
        health.logger.info({}, "the ledger was opened anew");
        return;
      } catch (err) {
        health.failed(err, "the ledger could not be opened anew; retrying");
      }
      await sleep(clock, pauseMs, closing.signal).catch(() => undefined);
    }
  }

  return {
    async current() {
      if (reopening !== undefined) throw openedAnew();
      return current.starting;
    },
    isWorking: (engine) => engine === working && reopening === undefined,
    async close() {
      closing.abort();
      await reopening;
      const last = await current.starting.catch(() => undefined);
      await last?.close();
    },
  };
}

/** A start of an engine. */
interface Attempt<Engine> {
  readonly starting: Promise<Engine>;
  /** The engine has reported that its ledger is not the one any more. */
  isReplaced: boolean;
}

/** For calls of an engine whose ledger is opened anew. */
export function openedAnew(cause?: unknown): FacilitatorError {
  return new FacilitatorError("The ledger is being opened anew", { kind: "unavailable", cause });
}
