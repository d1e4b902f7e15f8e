import { sleep } from "@coinslot/chain";
import { catchUp } from "../catch-up.ts";
import type { ChainContext } from "../chain-context.ts";
import type { Doubt } from "../live/doubt.ts";
import { pollPast } from "../live/poll-chain.ts";
import { pollEverywhere } from "../live/poll-everywhere.ts";
import type { Openings } from "../openings.ts";
import type { BlockId } from "../store/block-id.ts";
import { readChain } from "../store/chain-row.ts";
import { findKnownBlock } from "../store/marks.ts";
import { isRewindPending, readNextRequest } from "../store/requests.ts";
import { voteOnFinal } from "../verify/vote-on-final.ts";

/** Maximum wait of a request for a round of history, beside the write under way. */
const requestPollIntervalMs = 1_000;

/** Follows a chain while it has no window. */
export interface HistoryFollower {
  /** One step: a poll of the past, and a round of history if it is still part of the chain. */
  step(): Promise<void>;
  /** Blocks were taken back. */
  reset(): void;
  /** A vote elsewhere was about this block, or about one below it. */
  voted(block: BlockId): void;
}

/**
 * A round of history may take hours. It is left for work that cannot wait as long: a request, or a
 * written block that was replaced. The written part of the round stands, and the next round goes on
 * from there.
 */
export function createHistoryFollower(
  context: ChainContext,
  { doubt, openings, signal }: { doubt: Doubt; openings: Openings; signal: AbortSignal },
): HistoryFollower {
  const { chain, database, pool, outvoted, clock } = context;
  const { chainId } = chain;
  /**
   * Was written before another endpoint disagreed: the newest block may be of the new chain
   * already.
   */
  let suspect: BlockId | undefined;
  /**
   * The time and the block of the last vote. Votes have a pace of their own: rounds may be short.
   */
  let lastVote = { at: clock.now(), block: Number.POSITIVE_INFINITY };

  async function poll(known: BlockId | undefined) {
    return pollEverywhere(
      context,
      (handle) => pollPast(handle, { chain, pool, known, findKnown }),
      { signal },
    );
  }

  function findKnown(number: number) {
    return findKnownBlock(database.kysely, { chainId, number });
  }

  /**
   * Votes between rounds. A stopped chain waits for its command. An outvoted endpoint may have all
   * blocks below those of its fork: where these were taken back, a vote would let it in again.
   */
  async function voteIfDue(): Promise<void> {
    if (clock.now() - lastVote.at < chain.verifyAfterMs) return;
    const newest = await findKnown(Number.MAX_SAFE_INTEGER);
    if (newest === undefined || (outvoted.size > 0 && newest.number < lastVote.block)) return;
    const { state } = await readChain(database, chainId);
    if (state !== "stopped") await vote(newest, signal);
  }

  function voted({ number }: BlockId): void {
    lastVote = { at: clock.now(), block: number };
  }

  async function vote(block: BlockId, voting: AbortSignal): Promise<void> {
    voted(block);
    await voteOnFinal(context, block, voting);
  }

  /** Aborts a round when other work has priority. */
  async function watchRound(round: AbortController, known: BlockId | undefined): Promise<void> {
    let polledAt = clock.now();
    let oldest = known;
    while (!round.signal.aborted) {
      await sleep(clock, requestPollIntervalMs, round.signal).catch(() => undefined);
      if (round.signal.aborted) return;
      openings.findMissing();
      try {
        const isDoubted = !doubt.isClear();
        if (await readNextRequest(database.kysely, { chainId, isDoubted })) return leave();
        if (clock.now() - polledAt < chain.verifyAfterMs) continue;
        polledAt = clock.now();
        if ((await poll(oldest)).event.type === "beyond-finality") {
          suspect = oldest;
          return leave();
        }
        oldest = await findKnown(Number.MAX_SAFE_INTEGER);
        if (oldest !== undefined) await vote(oldest, round.signal);
      } catch {
        // The round meets the same endpoints and the same database; its failure is the reported
        // one.
      }
    }

    function leave() {
      round.abort(new Error("Something goes before history"));
    }
  }

  async function runRound(known: BlockId | undefined): Promise<void> {
    const round = new AbortController();
    const end = () => round.abort(signal.reason);
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
    const watching = watchRound(round, known);
    try {
      await catchUp(context, round.signal);
    } catch (error) {
      // An intended abort: the next step finds the reason.
      if (signal.aborted || !round.signal.aborted) throw error;
    } finally {
      signal.removeEventListener("abort", end);
      round.abort(new Error("The round has ended"));
      await watching;
    }
  }

  return {
    async step() {
      // Before the poll: an outvoted endpoint that is back may be the only one that answers.
      await voteIfDue();
      if (await isRewindPending(database.kysely, chainId)) return;
      const known = suspect ?? (await findKnown(Number.MAX_SAFE_INTEGER));
      const { event, endpoint, unasked } = await poll(known);
      if (event.type === "beyond-finality") return doubt.raise(event, { endpoint, unasked });
      suspect = undefined;
      await doubt.clear();
      await runRound(known);
    },
    reset() {
      suspect = undefined;
    },
    voted,
  };
}
