import type { ChainContext } from "../chain-context.ts";
import type { Segment } from "../history/plan-segments.ts";
import { doSumsHold, sumBelow, writeSums } from "../store/balance-sums.ts";
import type { BlockId } from "../store/block-id.ts";
import { readChain } from "../store/chain-row.ts";
import { updateChecks } from "../store/checks.ts";
import { type BlockRange, coverRange, isCovered, readCoverage } from "../store/coverage.ts";
import { eventsChannel } from "../store/events.ts";
import { mendBlock } from "../store/mend-block.ts";
import { blockOfPosition } from "../store/position.ts";
import { reopenTold, writeAndTell } from "../webhooks/tell-final.ts";
import type { VerificationRange } from "./choose-range.ts";
import type { Verdict } from "./verify-range.ts";

/**
 * Writes the result of a second reading, in one transaction: from then on the range is verified.
 * Returns false if nothing was written, since the stored rows have changed since they were read.
 */
export async function writeVerdict(
  context: ChainContext,
  {
    segment: { tokens },
    chosen,
    base,
    verdict,
    started,
    signal,
  }: {
    segment: Segment;
    chosen: VerificationRange;
    /** The newest final block: what is above it changes at any time. */
    base: BlockId;
    verdict: Verdict;
    /** The count of `rewrites` when the range was chosen. */
    started: number;
    signal: AbortSignal;
  },
): Promise<boolean> {
  const { chain, database, lease, evidence, logger, onRepair, rewrites } = context;
  const { chainId } = chain;
  const { dialect } = database;
  const { differences } = verdict;
  const numbers = new Set(differences.map(({ block }) => block.number));
  const mended = chosen.stored.rows.filter(({ position }) =>
    numbers.has(blockOfPosition(position)),
  );
  const rows = [...mended, ...differences.flatMap(({ truth }) => truth.rows)];
  const below = base.number + 1;
  const isMending = differences.length > 0;
  const found = isMending ? await sumBelow(database, { tokens, rows, below, signal }) : undefined;
  if (rewrites.count !== started) return false;
  const tokenIds = tokens.map(({ id }) => id);
  // A block that is mended may be beside the range.
  const silent = { tokenIds, range: chosen.asked, mended };
  const writing = { chainId, database, lease, silent };
  const isWritten = await writeAndTell(writing, async (transaction) => {
    // A process of another release may have taken blocks back, without knowledge of second
    // readings.
    const indexed = await readCoverage(transaction, tokens);
    const written = [...numbers].map((from) => ({ from, next: from + 1 }));
    const isIndexed = (blocks: BlockRange) => isCovered(indexed, tokens, blocks);
    if (![chosen.range, ...written].every(isIndexed)) return false;
    if (found !== undefined && !(await doSumsHold(transaction, found, tokens))) return false;
    const { announced_from } = await readChain({ kysely: transaction }, chainId);
    for (const { block, truth } of differences) {
      const isAnnounced = announced_from !== null && block.number >= announced_from;
      const mend = { chainId, tokens, block, truth, isAnnounced, sums: found?.sums ?? new Map() };
      await mendBlock(transaction, dialect, mend);
    }
    if (found !== undefined) await writeSums(transaction, dialect, { ...found, signal });
    const proofs = evidence.receipts === "unknown" ? undefined : evidence.receipts;
    const news = { repairedBlocks: differences.length, ...(proofs && { proofs }) };
    await updateChecks(transaction, dialect, { chainId, news });
    if (verdict.kind !== "agreed") return true;
    await reopenTold(transaction, dialect, { tokenIds, range: chosen.range });
    for (const { id } of tokens)
      await coverRange(transaction, id, chosen.range, "indexer_verified_ranges");
    return true;
  });
  if (!isWritten || !isMending) return isWritten;
  await database.notify(eventsChannel, "");
  for (const { block } of differences) {
    const repair = {
      chain: chain.name,
      tokens: tokens.map(({ token }) => token),
      block: block.number,
    };
    logger.error(repair, "A wrongly stored block was repaired");
    onRepair(repair);
  }
  return true;
}
