import { RpcClosedError, sleep } from "@coinslot/chain";
import { isDatabaseError } from "@coinslot/storage";
import { catchUp } from "./catch-up.ts";
import type { ChainContext } from "./chain-context.ts";
import { findOpenings } from "./find-openings.ts";
import { createGapFilling } from "./history/fill-gaps.ts";
import { applySyncEvent } from "./live/apply-sync-event.ts";
import { joinTokens } from "./live/join-tokens.ts";
import { look } from "./live/look.ts";
import type { SyncEvent } from "./live/sync-event.ts";
import { updateChain } from "./store/chain-row.ts";
import { PenLostError } from "./store/pen.ts";
import { type BlockId, readWindow } from "./store/window.ts";

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;
/** How often others are told that a chain without new blocks is being looked at. */
const TELL_EVERY_MS = 1_000;

/**
 * Follows a chain until the signal is aborted, or it is stopped. Every step begins with what the database holds, and
 * leaves it whole, so any failure is survived by beginning the next step. Rejects when the pen is lost.
 */
export async function followChain(context: ChainContext, signal: AbortSignal): Promise<void> {
  const { chain, logger, clock } = context;
  const filling = createGapFilling(context, signal);
  let headEndpoint: number | undefined;
  let toldAt = Number.NEGATIVE_INFINITY;
  let pauseMs = FIRST_PAUSE_MS;
  let areOpeningsKnown = false;
  try {
    while (!signal.aborted) {
      try {
        if (!areOpeningsKnown) await findOpenings(context, signal);
        areOpeningsKnown = true;
        const isDone = await step();
        if (isDone) return;
        pauseMs = FIRST_PAUSE_MS;
      } catch (error) {
        if (signal.aborted || error instanceof RpcClosedError) return;
        if (error instanceof PenLostError) throw error;
        logger.warn({ chain: chain.name, error }, "Following the chain failed, and is tried again");
        await tellProblem(context, error);
        await sleep(clock, pauseMs, signal).catch(() => undefined);
        pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
      }
    }
  } finally {
    await filling.ended();
  }

  /** One step of history or of live. Returns whether the chain is stopped. */
  async function step(): Promise<boolean> {
    const window = await readWindow(context.database.kysely, chain.chainId);
    if (!isNotEmpty(window)) {
      await catchUp(context, signal);
      return false;
    }
    const { event, endpoint } = await lookAtChain(window);
    // Before a rollback there is nothing to join: the blocks of the window may be nowhere any more.
    const isSound = event.type === "unchanged" || event.type === "advanced";
    const live = isSound ? await joinTokens(context, { window, signal, filling }) : [];
    if (event.type === "unchanged" && clock.now() - toldAt < TELL_EVERY_MS) {
      await sleep(clock, chain.pollIntervalMs, signal);
      return false;
    }
    await applySyncEvent(context, event, { window, tokens: live, signal });
    toldAt = clock.now();
    if (event.type === "advanced") headEndpoint = endpoint;
    return event.type === "beyond-finality";
  }

  async function lookAtChain(window: readonly [BlockId, ...BlockId[]]) {
    const { pool } = context;
    const { event, endpoint } = await pool.onEndpoint(
      async (handle) => ({
        event: await look(handle, { window, chain, headEndpoint }),
        endpoint: handle.endpoint,
      }),
      { signal },
    );
    if (event.type !== "beyond-finality") return { event, endpoint };
    // One broken endpoint must not stop a chain: it is stopped when every endpoint was asked and none knows our final
    // block. The first that knows it is followed.
    let unasked: unknown;
    for (const other of pool.endpoints) {
      if (other.endpoint === endpoint) continue;
      try {
        const found: SyncEvent = await look(other, { window, chain, headEndpoint: undefined });
        if (found.type !== "beyond-finality") return { event: found, endpoint: other.endpoint };
      } catch (error) {
        unasked = error;
      }
    }
    if (unasked === undefined) return { event, endpoint };
    const { base, found } = event;
    throw new Error(
      `Block ${base.number} was final as ${base.hash}, and is ${found} at endpoint ${endpoint}. Nothing is decided until all the others can be asked.`,
      { cause: unasked },
    );
  }
}

/** Best effort: what is wrong may be the database. */
async function tellProblem(
  { chain: { chainId }, database, pen }: ChainContext,
  error: unknown,
): Promise<void> {
  const problem = error instanceof Error ? error.message : String(error);
  const news = { problem, isProgress: false };
  try {
    await pen.write((transaction) => updateChain(transaction, database.dialect, { chainId, news }));
  } catch (failure) {
    if (!isDatabaseError(failure)) throw failure;
  }
}

function isNotEmpty(window: readonly BlockId[]): window is readonly [BlockId, ...BlockId[]] {
  return window.length > 0;
}
