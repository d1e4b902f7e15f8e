import { sleep } from "@coinslot/chain";
import type { ChainContext } from "../chain-context.ts";
import type { KnownToken } from "../store/known-token.ts";
import { LeaseLostError } from "../store/writer-lease.ts";
import { indexHistory } from "./index-history.ts";

const pauseMs = 100;

/** Gap filling: history beside live. */
export interface GapFilling {
  /**
   * Begins to index the blocks that these tokens miss below `next`, unless a run is under way.
   * Throws a `LeaseLostError`.
   */
  begin(tokens: readonly KnownToken[], next: number): void;
  /** Resolves when no run is under way. */
  ended(): Promise<void>;
  /** The same, or after `patienceMs`. */
  endedWithin(patienceMs: number): Promise<void>;
  /** Leaves the run under way, so that blocks may be taken back; written ranges stand. */
  stop(): Promise<void>;
}

/**
 * Fills the gaps of tokens that were added, or whose start block was lowered. One run at a time.
 */
export function createGapFilling(context: ChainContext, signal: AbortSignal): GapFilling {
  const { chain, logger, clock } = context;
  let running: Promise<void> | undefined;
  let leaving = new AbortController();
  let failure: unknown;

  async function run(tokens: readonly KnownToken[], next: number): Promise<void> {
    const leave = () => leaving.abort(signal.reason);
    leaving = new AbortController();
    signal.addEventListener("abort", leave, { once: true });
    if (signal.aborted) leave();
    try {
      await indexHistory(context, {
        tokens,
        next,
        announcedFrom: undefined,
        isBesideLive: true,
        signal: leaving.signal,
      });
    } catch (error) {
      if (leaving.signal.aborted) return;
      failure = error;
      if (error instanceof LeaseLostError) return;
      logger.warn({ chain: chain.name, error }, "Filling a gap failed, and is tried again");
      await sleep(clock, pauseMs, signal).catch(() => undefined);
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }

  return {
    begin(tokens, next) {
      if (failure instanceof LeaseLostError) throw failure;
      running ??= run(tokens, next).finally(() => {
        running = undefined;
      });
    },
    ended: () => running ?? Promise.resolve(),
    async endedWithin(patienceMs) {
      const waiting = new AbortController();
      const patience = sleep(clock, patienceMs, waiting.signal).catch(() => undefined);
      await Promise.race([running, patience]);
      waiting.abort(new Error("The wait is over"));
    },
    async stop() {
      leaving.abort(new Error("Blocks are undone"));
      await running;
    },
  };
}
