import { RpcClosedError, sleep } from "@coinslot/chain";
import { isDatabaseError } from "@coinslot/storage";
import type { ChainContext } from "./chain-context.ts";
import { createGapFilling } from "./history/fill-gaps.ts";
import { createHistoryFollower } from "./history/follow-history.ts";
import { applySyncEvent } from "./live/apply-sync-event.ts";
import { createDoubt } from "./live/doubt.ts";
import { joinTokens } from "./live/join-tokens.ts";
import { pollChain } from "./live/poll-chain.ts";
import { pollEverywhere } from "./live/poll-everywhere.ts";
import { runRequest } from "./maintenance/run-request.ts";
import { createOpenings } from "./openings.ts";
import type { BlockId } from "./store/block-id.ts";
import { updateChain } from "./store/chain-row.ts";
import { findFinalBlock } from "./store/final-block.ts";
import { findKnownBlock } from "./store/marks.ts";
import { readNextRequest } from "./store/requests.ts";
import { readWindow } from "./store/window.ts";
import { LeaseLostError } from "./store/writer-lease.ts";
import { voteOnFinal } from "./verify/vote-on-final.ts";

const firstPauseMs = 100;
const maxPauseMs = 10_000;
/** Interval at which the writer records that it polls a chain without new blocks. */
const tellEveryMs = 1_000;

/**
 * Follows a chain until the signal is aborted. Every step begins with the state of the database,
 * and leaves it whole. So any failure is survived by beginning the next step. Rejects when the
 * writer lease is lost.
 */
export async function followChain(context: ChainContext, signal: AbortSignal): Promise<void> {
  const { chain, pool, outvoted, logger, clock } = context;
  const filling = createGapFilling(context, signal);
  const openings = createOpenings(context, signal);
  const doubt = createDoubt(context, signal);
  const history = createHistoryFollower(context, { doubt, openings, signal });
  let headEndpoint: number | undefined;
  let toldAt = Number.NEGATIVE_INFINITY;
  /** The time of the last change, or of the last search for one at every endpoint. */
  let changedAt = clock.now();
  let pauseMs = firstPauseMs;
  let isPrepared = false;
  try {
    while (!signal.aborted) {
      try {
        if (!isPrepared) await prepare();
        isPrepared = true;
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
    await Promise.all([filling.ended(), openings.ended()]);
  }

  /**
   * Votes about the newest final block before any endpoint is read. The process before may have
   * outvoted one, and history would read its fork until the next vote.
   */
  async function prepare(): Promise<void> {
    const newest = await findFinalBlock(context.database.kysely, chain.chainId);
    if (newest !== undefined) {
      await voteOnFinal(context, newest, signal);
      history.voted(newest);
    }
    await openings.find();
  }

  function findKnown(number: number) {
    return findKnownBlock(context.database.kysely, { chainId: chain.chainId, number });
  }

  /** One step: a request, or a poll of the chain and what follows from it. */
  async function step(): Promise<void> {
    const { kysely } = context.database;
    const isDoubted = !doubt.isClear();
    openings.findMissing();
    const request = await readNextRequest(kysely, { chainId: chain.chainId, isDoubted });
    if (request !== undefined) {
      await filling.stop();
      history.reset();
      await runRequest(context, request, signal);
      return;
    }
    const window = await readWindow(kysely, chain.chainId);
    if (!isNotEmpty(window)) return history.step();
    // Second readings vote, too, and about no block above the base.
    history.voted(window[0]);
    // An outvoted endpoint's fork is left also for a shorter chain.
    if (headEndpoint !== undefined && outvoted.has(headEndpoint)) headEndpoint = undefined;
    const isStale = clock.now() - changedAt > chain.staleAfterMs;
    const { event, endpoint, unasked } = await pollEverywhere(
      context,
      (handle, isConfirming) =>
        pollChain(handle, {
          window,
          chain,
          pool,
          headEndpoint: isConfirming ? undefined : headEndpoint,
          findKnown,
        }),
      { signal, isStale },
    );
    if (isStale || event.type !== "unchanged") changedAt = clock.now();
    if (event.type === "beyond-finality") {
      // Gap filling would read blocks of the new chain among those of the old one.
      await filling.stop();
      return doubt.raise(event, { endpoint, unasked });
    }
    await doubt.clear();
    // Before a rollback there is nothing to join: the window's blocks may no longer exist on any
    // node.
    const isSound = event.type === "unchanged" || event.type === "advanced";
    const live = isSound ? await joinTokens(context, { window, signal, filling }) : [];
    if (event.type === "unchanged" && clock.now() - toldAt < tellEveryMs)
      return sleep(clock, chain.pollIntervalMs, signal);
    await applySyncEvent(context, event, { window, tokens: live, signal });
    toldAt = clock.now();
    if (event.type === "advanced") headEndpoint = endpoint;
  }
}

/** Best effort: the database itself may be at fault. */
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
