import { sleep } from "@coinslot/chain";
import type { ChainContext } from "../chain-context.ts";
import { updateChecks } from "../store/checks.ts";
import { readNextRequest } from "../store/requests.ts";
import { anyBlocks } from "../webhooks/find-returned.ts";
import { writeAndTell } from "../webhooks/tell-final.ts";
import { type BeyondFinality, settleDoubt } from "./settle-doubt.ts";

/**
 * The longest pause between two polls, since requests and an endpoint that is back wait for the
 * next one.
 */
const maxPauseMs = 2_500;

/** Doubt about final blocks: whether they still are part of the chain. */
export interface Doubt {
  /**
   * Every endpoint that answers has another block in place of a final one. `unasked`: an endpoint
   * that does not answer. Waits before the next poll, unless a rewind is due.
   */
  raise(
    event: BeyondFinality,
    by: { endpoint: number; unasked: number | undefined },
  ): Promise<void>;
  /** The indexed final block is part of the chain. */
  clear(): Promise<void>;
  /** True if the last poll cleared it. False before the first poll, and on a stopped chain. */
  isClear(): boolean;
}

export function createDoubt(context: ChainContext, signal: AbortSignal): Doubt {
  const { chain, database, lease, pool, clock } = context;
  const { chainId } = chain;
  const pauseMs = Math.max(chain.pollIntervalMs, Math.min(chain.verifyAfterMs / 4, maxPauseMs));
  let since: number | undefined;
  // An earlier process may have left one.
  let isClear = false;

  return {
    async raise(event, { endpoint, unasked }) {
      const handle = pool.endpoints.find((each) => each.endpoint === endpoint);
      if (handle === undefined) throw new Error(`Unknown endpoint ${endpoint}`);
      isClear = false;
      // Some of the endpoints decide nothing; their answers still raise doubt.
      if (unasked !== undefined) since = undefined;
      else since ??= clock.now();
      const doubtedForMs = clock.now() - (since ?? clock.now());
      await settleDoubt(context, event, { endpoint: handle, doubtedForMs, unasked });
      const decision = await readNextRequest(database.kysely, { chainId, isDoubted: true });
      if (decision !== undefined) since = undefined;
      else await sleep(clock, pauseMs, signal);
    },
    async clear() {
      since = undefined;
      if (isClear) return;
      const news = { doubted_from: null };
      await writeAndTell({ chainId, database, lease, silent: anyBlocks }, (transaction) =>
        updateChecks(transaction, database.dialect, { chainId, news }),
      );
      isClear = true;
    },
    isClear: () => isClear,
  };
}
