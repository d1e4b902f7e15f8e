import type { RpcEndpointHandle } from "@coinslot/chain";
import type { ChainContext } from "../chain-context.ts";
import { readChain, updateChain } from "../store/chain-row.ts";
import { updateChecks } from "../store/checks.ts";
import { findLowestIndexed, findVerifiedTo } from "../store/coverage.ts";
import { addRequest } from "../store/requests.ts";
import { findCommonBlock } from "./find-common-block.ts";
import type { SyncEvent } from "./sync-event.ts";

export type BeyondFinality = Extract<SyncEvent, { type: "beyond-finality" }>;

/** The part of a chain's context that a decision needs. */
type Doubted = Pick<ChainContext, "database" | "logger" | "rewrites"> & {
  chain: Pick<ChainContext["chain"], "chainId" | "name" | "maxRewindBlocks" | "verifyAfterMs">;
  lease: Pick<ChainContext["lease"], "write">;
};

/**
 * Decides about a final block that is another one at every endpoint. It is doubted first, for an
 * endpoint may be on a fork for a while. It stays in doubt while an endpoint does not answer. A
 * rewind is requested if it is the same later, and not too deep for a rewind without a command.
 * Otherwise the chain is stopped, and not served until it is the indexed one again, or a command
 * rewinds it.
 */
export async function settleDoubt(
  context: Doubted,
  event: BeyondFinality,
  {
    endpoint,
    doubtedForMs,
    unasked,
  }: { endpoint: RpcEndpointHandle; doubtedForMs: number; unasked: number | undefined },
): Promise<void> {
  const { chain, database, lease, logger } = context;
  const { chainId, maxRewindBlocks, verifyAfterMs } = chain;
  const { base, replaced, found, head } = event;
  const { kysely } = database;
  const below = replaced.number;
  // A second reading under way would take the new blocks for the right form of the old ones.
  context.rewrites.count += 1;
  const { common, doubtedFrom } = await findCommonBlock(endpoint, kysely, {
    chainId,
    below,
  });
  const { state } = await readChain(database, chainId);
  // Blocks that were never verified were not final. A stopped chain waits for its command.
  const verifiedTo = state === "stopped" ? base.number : await findVerifiedTo(kysely, chainId);
  const top = Math.min(base.number, verifiedTo);
  // Without a common block everything goes, also known blocks below those that a reindex forgot.
  const lowest = Math.min(doubtedFrom, await findLowestIndexed(kysely, chainId));
  const kept = common?.number ?? lowest - 1;
  const depth = Math.max(0, top - kept);
  const isDue = unasked === undefined && doubtedForMs >= verifyAfterMs;
  const isTooDeep = depth > maxRewindBlocks;
  const isRewound = isDue && !isTooDeep;
  // A chain that an earlier process has stopped stays so, and names its way out, until a decision.
  const isStopped = isTooDeep && (isDue || state === "stopped");
  const change = `Block ${replaced.number} was final as ${replaced.hash}, and is ${found} now.`;
  const problem = isStopped
    ? `${change} ${describeWayOut(chain.name, { kept, depth })}`
    : unasked === undefined
      ? change
      : `${change} The decision waits for an answer of endpoint ${unasked}.`;
  await lease.write(async (transaction) => {
    await updateChain(transaction, database.dialect, {
      chainId,
      news: {
        problem,
        ...(isStopped && { state: "stopped" as const }),
        head: {
          number: Math.max(head.number, base.number),
          timestampMs: head.timestampMs,
          finalized: base.number,
        },
        isProgress: false,
      },
    });
    await updateChecks(transaction, database.dialect, {
      chainId,
      news: { doubted_from: Math.min(doubtedFrom, (common?.number ?? doubtedFrom) + 1) },
    });
    if (isRewound)
      await addRequest(transaction, database.dialect, {
        chainId,
        kind: "rewind",
        from: kept + 1,
      });
  });
  if (isRewound)
    logger.error({ chain: chain.name, base, found, depth }, "Final blocks were replaced");
  else if (isStopped)
    logger.error({ chain: chain.name, base, found, depth }, "The chain is stopped");
}

function describeWayOut(name: string, { kept, depth }: { kept: number; depth: number }): string {
  if (kept < 0)
    return "No older block of this chain is indexed: if its endpoints are right, index it into another database.";
  return `That is ${depth} blocks deep, more than maxRewindBlocks. If its endpoints are right: coinslot indexer rewind --chain ${name} --to ${kept}`;
}
