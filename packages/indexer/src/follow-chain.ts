import { RpcClosedError, type RpcEndpointHandle, sleep } from "@coinslot/chain";
import { isDatabaseError } from "@coinslot/storage";
import { catchUp } from "./catch-up.ts";
import type { ChainContext } from "./chain-context.ts";
import { findOpenings } from "./find-openings.ts";
import { createGapFilling } from "./history/fill-gaps.ts";
import { applySyncEvent } from "./live/apply-sync-event.ts";
import { createDoubt } from "./live/doubt.ts";
import { joinTokens } from "./live/join-tokens.ts";
import { look, lookAtPast } from "./live/poll-chain.ts";

import type { SyncEvent } from "./live/sync-event.ts";
import { runRequest } from "./maintenance/run-request.ts";
import type { BlockId } from "./store/block-id.ts";
import { updateChain } from "./store/chain-row.ts";
import { findKnownBlock } from "./store/marks.ts";
import { readNextRequest } from "./store/requests.ts";
import { readWindow } from "./store/window.ts";
import { LeaseLostError } from "./store/writer-lease.ts";

const firstPauseMs = 100;
const maxPauseMs = 10_000;
/** How often others are told that a chain without new blocks is being looked at. */
const tellEveryMs = 1_000;

/**
 * Follows a chain until the signal is aborted. Every step begins with what the database holds, and leaves it whole, so
 * any failure is survived by beginning the next step. Rejects when the writer lease is lost.
 */
export async function followChain(context: ChainContext, signal: AbortSignal): Promise<void> {
  const { chain, logger, clock } = context;
  const filling = createGapFilling(context, signal);
  const doubt = createDoubt(context, signal);
  let headEndpoint: number | undefined;
  let toldAt = Number.NEGATIVE_INFINITY;
  let pauseMs = firstPauseMs;
  let areOpeningsKnown = false;
  try {
    while (!signal.aborted) {
      try {
        if (!areOpeningsKnown) await findOpenings(context, signal);
        areOpeningsKnown = true;
        await step();
        pauseMs = firstPauseMs;
      } catch (error) {
        if (signal.aborted || error instanceof RpcClosedError) return;
        if (error instanceof LeaseLostError) throw error;
        logger.warn({ chain: chain.name, error }, "Following the chain failed, and is tried again");
        await tellProblem(context, error);
        await sleep(clock, pauseMs, signal).catch(() => undefined);
        pauseMs = Math.min(2 * pauseMs, maxPauseMs);
      }
    }
  } finally {
    await filling.ended();
  }

  /** One step: a request, or a look at the chain and what follows from it. */
  async function step(): Promise<void> {
    const { kysely } = context.database;
    const request = await readNextRequest(kysely, chain.chainId);
    if (request !== undefined) {
      await filling.stop();
      await runRequest(context, request, signal);
      return;
    }
    const window = await readWindow(kysely, chain.chainId);
    if (!isNotEmpty(window)) return stepInHistory();
    const { event, endpoint, unasked } = await lookAtChain((handle) =>
      look(handle, { window, chain, headEndpoint }),
    );
    if (event.type === "beyond-finality") return doubt.raise(event, { endpoint, unasked });
    await doubt.clear();
    // Before a rollback there is nothing to join: the blocks of the window may be nowhere any more.
    const isSound = event.type === "unchanged" || event.type === "advanced";
    const live = isSound ? await joinTokens(context, { window, signal, filling }) : [];
    if (event.type === "unchanged" && clock.now() - toldAt < tellEveryMs)
      return sleep(clock, chain.pollIntervalMs, signal);
    await applySyncEvent(context, event, { window, tokens: live, signal });
    toldAt = clock.now();
    if (event.type === "advanced") headEndpoint = endpoint;
  }

  async function stepInHistory(): Promise<void> {
    const newest = { chainId: chain.chainId, number: Number.MAX_SAFE_INTEGER };
    const known = await findKnownBlock(context.database.kysely, newest);
    const { event, endpoint, unasked } = await lookAtChain((handle) =>
      lookAtPast(handle, { chain, known }),
    );
    if (event.type === "beyond-finality") return doubt.raise(event, { endpoint, unasked });
    await doubt.clear();
    await catchUp(context, signal);
  }

  async function lookAtChain(read: (handle: RpcEndpointHandle) => Promise<SyncEvent>) {
    const { pool } = context;
    const { event, endpoint } = await pool.onEndpoint(
      async (handle) => ({ event: await read(handle), endpoint: handle.endpoint }),
      { signal },
    );
    if (event.type !== "beyond-finality") return { event, endpoint, unasked: undefined };
    // One broken endpoint must not decide: it is decided when every endpoint was asked and none knows our final block.
    // The first that knows it is followed.
    let unasked: number | undefined;
    for (const other of pool.endpoints) {
      if (other.endpoint === endpoint) continue;
      try {
        const found = await read(other);
        if (found.type !== "beyond-finality")
          return { event: found, endpoint: other.endpoint, unasked: undefined };
      } catch {
        unasked = other.endpoint;
      }
    }
    return { event, endpoint, unasked };
  }
}

/** Best effort: what is wrong may be the database. */
async function tellProblem(
  { chain: { chainId }, database, lease }: ChainContext,
  error: unknown,
): Promise<void> {
  const problem = error instanceof Error ? error.message : String(error);
  const news = { problem, isProgress: false };
  try {
    await lease.write((transaction) =>
      updateChain(transaction, database.dialect, { chainId, news }),
    );
  } catch (failure) {
    if (!isDatabaseError(failure)) throw failure;
  }
}

function isNotEmpty(window: readonly BlockId[]): window is readonly [BlockId, ...BlockId[]] {
  return window.length > 0;
}
