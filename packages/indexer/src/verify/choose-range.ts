import type { ChainContext } from "../chain-context.ts";
import type { Segment } from "../history/plan-segments.ts";
import { type BlockRange, isCovered, readCoverage } from "../store/coverage.ts";
import { blockOfPosition } from "../store/position.ts";
import {
  findBlockBelow,
  findBlockOfTransfer,
  readStored,
  type StoredTransfers,
} from "../store/read-stored.ts";

/** Range of a second reading, and its stored transfers. */
export interface VerificationRange {
  /** The blocks that it verifies. */
  range: BlockRange;
  /** The requested blocks: a little more, up to known transfers on both sides. */
  asked: BlockRange;
  /**
   * True if a transfer at the last block, or above it, is known. An answer that is cut or empty
   * does not have it.
   */
  hasKnownEnd: boolean;
  /** The stored transfers of the requested blocks. */
  stored: StoredTransfers;
  /**
   * Returns whether a block was indexed of every token before its transfers were read. Beside the
   * range, others may be history's to write, which may have done so since.
   */
  isIndexed(block: number): boolean;
}

/** Numbers of blocks. */
export interface RangeLimits {
  span: number;
  reach: number;
}

/**
 * Chooses the next blocks of a segment such that known transfers stand at both ends. Then an answer
 * that is empty, cut, or of a node that lags cannot agree. The range ends at its last transfer, or
 * up to the next one is asked for, too. Blocks too far below the next one are a range of their own,
 * whose end stays open.
 *
 * `span`: the most blocks of the range. `reach`: the most that are asked for at once.
 */
export async function chooseRange(
  { chain, database }: ChainContext,
  { tokens, from, next }: Segment,
  { span, reach }: RangeLimits,
): Promise<VerificationRange> {
  const cap = Math.min(next, from + span);
  const count = Math.max(1, Math.floor(chain.transfersPerRequest / tokens.length));
  const ends: number[] = [];
  const nearest: number[] = [];
  const before: number[] = [];
  for (const token of tokens) {
    const full = await findBlockOfTransfer(database, { token, from, count });
    const last = full !== undefined && full < cap ? full : undefined;
    if (last !== undefined) ends.push(last);
    nearest.push((await findBlockBelow(database, { token, below: cap })) ?? -1);
    before.push((await findBlockBelow(database, { token, below: from })) ?? -1);
  }
  const lastStored = Math.max(...nearest);
  const end = ends.length > 0 ? Math.min(...ends) : lastStored >= from ? lastStored : undefined;
  const range = { from, next: end === undefined ? cap : end + 1 };
  const asked = { ...range };
  let hasKnownEnd = end !== undefined;
  if (end === undefined) {
    const above = await Promise.all(
      tokens.map((token) => findBlockOfTransfer(database, { token, from: cap, count: 1 })),
    );
    const witness = Math.min(...above.map((block) => block ?? Number.POSITIVE_INFINITY));
    hasKnownEnd = witness - from < reach;
    if (hasKnownEnd) asked.next = witness + 1;
    else asked.next = range.next = Math.min(cap, witness - reach + 1);
  }
  // One known transfer below: an answer that begins later does not have it.
  const known = Math.max(...before);
  if (known >= 0 && asked.next - known <= reach) asked.from = known;
  const { chainId } = chain;
  const indexed = await readCoverage(database.kysely, tokens);
  const stored = await readStored(database.kysely, { chainId, tokens, range: asked });
  const isIndexed = (block: number) => isCovered(indexed, tokens, { from: block, next: block + 1 });
  return { range, asked, hasKnownEnd, stored, isIndexed };
}

/**
 * The blocks of a range that a second reading proves. Where transfers are stored, the densest one:
 * a node that limits the logs of a block cuts there. And the last with stored transfers: an answer
 * that is cut within it still has its known end. Else a random one, or the last ones in turn where
 * the end is open: a node that lags lacks these first.
 */
export function blocksToProve(
  { stored, range, hasKnownEnd }: VerificationRange,
  { reading, random }: { reading: number; random: () => number },
): number[] {
  const counts = new Map<number, number>();
  for (const { position } of stored.rows) {
    const number = blockOfPosition(position);
    if (number >= range.from && number < range.next)
      counts.set(number, (counts.get(number) ?? 0) + 1);
  }
  if (counts.size === 0 && hasKnownEnd)
    return [range.from + Math.floor(random() * (range.next - range.from))];
  if (counts.size === 0) return [Math.max(range.from, range.next - 1 - reading)];
  let densest = Math.max(...counts.keys());
  const last = densest;
  for (const [number, count] of counts) if (count > (counts.get(densest) ?? 0)) densest = number;
  return densest === last ? [last] : [densest, last];
}
