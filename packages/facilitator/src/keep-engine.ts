import { type Clock, sleep } from "@coinslot/chain";
import { FacilitatorError } from "@coinslot/protocol";
import type { LedgerHealth } from "./ready/ledger-health.ts";
import type { Engine } from "./start-engine.ts";

/** The engine of a facilitator, which is another one after a restore of its ledger. */
export interface KeptEngine {
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
 * Starts an engine, and starts another one in its place when it reports that its ledger is not the
 * one any more that it has worked with.
 *
 * A process knows more than its ledger's rows: which leases and reservations are its own, ids of
 * sold things, transactions in flight. After a restore none of that is known to be true. So the
 * process does what a restart would do: it drops everything, and joins the ledger under a new name,
 * which no row has. Then its former reservations end as those of a dead process, and its former
 * leases, whatever their epochs, guard nothing.
 *
 * ```text
 *                 onReplaced                         start
 *   working ───────────────────► closing ─────────────────────► working
 *                                   │  ▲ failed: after a pause
 *                                   └──┘
 * ```
 *
 * @param options `start`: starts an engine; `isAnew` for all but the first
 */
export function keepEngine(options: {
  start: (options: { isAnew: boolean; onReplaced: (reason: unknown) => void }) => Promise<Engine>;
  health: LedgerHealth;
  clock: Clock;
}): KeptEngine {
  const { start, health, clock } = options;
  const closing = new AbortController();
  let reopening: Promise<void> | undefined;
  /** The ledger was replaced once more while it was opened anew. */
  let isReplacedAgain = false;
  let starting = start({ isAnew: false, onReplaced });
  let working: Engine | undefined;
  // `ready` and every method reject with it; there may be no caller.
  starting.then(
    (engine) => {
      working = engine;
    },
    () => undefined,
  );

  function onReplaced(reason: unknown): void {
    if (closing.signal.aborted) return;
    health.failed(reason);
    isReplacedAgain = reopening !== undefined;
    reopening ??= reopen().finally(() => {
      reopening = undefined;
    });
  }

  async function reopen(): Promise<void> {
    do {
      const former = await starting.catch(() => undefined);
      // Its start has failed, and ended what it had begun.
      if (former === undefined) return;
      isReplacedAgain = false;
      working = undefined;
      await former.close().catch((err: unknown) => {
        health.logger.warn({ err }, "the former engine left its ledger as it was");
      });
      await startAgain();
    } while (isReplacedAgain && !closing.signal.aborted);
  }

  async function startAgain(): Promise<void> {
    while (!closing.signal.aborted) {
      const next = start({ isAnew: true, onReplaced });
      try {
        working = await next;
        starting = next;
        health.logger.info({}, "the ledger was opened anew");
        return;
      } catch (err) {
        health.failed(err);
        health.logger.error({ err }, "the ledger could not be opened anew; retrying");
      }
      await sleep(clock, pauseMs, closing.signal).catch(() => undefined);
    }
  }

  return {
    async current() {
      if (reopening !== undefined) throw openedAnew();
      return starting;
    },
    isWorking: (engine) => engine === working && reopening === undefined,
    async close() {
      closing.abort();
      await reopening;
      const last = await starting.catch(() => undefined);
      await last?.close();
    },
  };
}

/** For calls of an engine whose ledger is opened anew. */
export function openedAnew(cause?: unknown): FacilitatorError {
  return new FacilitatorError("The ledger is being opened anew", { kind: "unavailable", cause });
}
