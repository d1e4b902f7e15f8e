import { sleep } from "@coinslot/chain";
import type { ChainContext } from "../chain-context.ts";
import type { BlockId } from "../store/block-id.ts";
import { findVerifiedTo } from "../store/coverage.ts";
import { addRequest, isRewindPending } from "../store/requests.ts";
import { type Agreement, agreeOnBlock } from "./agree-on-block.ts";

/** The longest pause between two votes, since nothing is followed meanwhile. */
const maxPauseMs = 10_000;

/**
 * Votes about a final block, and requests the rewind of blocks that two endpoints deny by their
 * heads. One endpoint alone may have shown them, while the others did not answer. A second vote has
 * to agree, up to `verifyAfterMs` later: two gateways may have asked nodes that lag. As in doubt, a
 * rewind without a command takes back `maxRewindBlocks` verified blocks at most.
 */
export async function voteOnFinal(
  context: Parameters<typeof agreeOnBlock>[0] &
    Pick<ChainContext, "rewrites" | "clock"> & { lease: Pick<ChainContext["lease"], "write"> },
  block: BlockId,
  signal: AbortSignal,
): Promise<Agreement> {
  const { chain, database, lease, logger, rewrites, clock } = context;
  const { chainId, maxRewindBlocks, verifyAfterMs } = chain;
  const { kysely, dialect } = database;
  const { count } = rewrites;
  let agreement = await agreeOnBlock(context, block, signal);
  if (agreement.deniedAbove === undefined) return agreement;
  await sleep(clock, Math.min(verifyAfterMs, maxPauseMs), signal);
  agreement = await agreeOnBlock(context, block, signal);
  const { deniedAbove } = agreement;
  // Blocks that were rewritten during the votes may be others now: the next vote sees them.
  if (deniedAbove === undefined || rewrites.count !== count) return agreement;
  const verifiedTo = Math.min(block.number, await findVerifiedTo(kysely, chainId));
  const depth = verifiedTo - deniedAbove;
  if (depth > maxRewindBlocks) {
    const remedy = `coinslot indexer rewind --chain ${chain.name} --to ${deniedAbove}`;
    return {
      ...agreement,
      problem: `${agreement.problem}. Of these, ${depth} are verified, more than maxRewindBlocks: ${remedy}`,
    };
  }
  if (await isRewindPending(kysely, chainId)) return agreement;
  logger.error(
    { chain: chain.name, above: deniedAbove },
    "Blocks that do not exist are taken back",
  );
  // A second reading under way would write blocks that are about to go.
  rewrites.count += 1;
  const from = deniedAbove + 1;
  await lease.write((transaction) =>
    addRequest(transaction, dialect, { chainId, kind: "rewind", from }).then(() => undefined),
  );
  return agreement;
}
