import type { ChainContext } from "../chain-context.ts";
import type { BlockId } from "../store/block-id.ts";
import { findVerifiedTo } from "../store/coverage.ts";
import { addRequest, isRewindPending } from "../store/requests.ts";
import { type Agreement, agreeOnBlock } from "./agree-on-block.ts";

/**
 * Votes about a final block, and requests the rewind of blocks that two endpoints deny by their
 * heads. One endpoint alone may have shown them, while the others did not answer. As in doubt, a
 * rewind without a command takes back `maxRewindBlocks` verified blocks at most.
 */
export async function voteOnFinal(
  context: Parameters<typeof agreeOnBlock>[0] &
    Pick<ChainContext, "rewrites"> & {
      lease: Pick<ChainContext["lease"], "write">;
    },
  block: BlockId,
  signal: AbortSignal,
): Promise<Agreement> {
  const { chain, database, lease, logger, rewrites } = context;
  const { chainId, maxRewindBlocks } = chain;
  const { kysely, dialect } = database;
  const { count } = rewrites;
  const agreement = await agreeOnBlock(context, block, signal);
  const { deniedAbove } = agreement;
  // Blocks that were rewritten during the vote may be others now: the next vote sees them.
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
