import type { BlockRange } from "../store/coverage.ts";
import { blockOfPosition } from "../store/position.ts";
import { describeContent, describeRow, type StoredTransfers } from "../store/read-stored.ts";
import type { TransferInsert } from "../transfer-log/transfer-batch.ts";

/** The transfers of some blocks, as stored or as read. */
type Reading = Pick<StoredTransfers, "rows" | "blocks">;

/**
 * The blocks of a range, ascending, whose transfers are not the same in both readings, by number,
 * content and hash.
 */
export function findDifferingBlocks(one: Reading, other: Reading, range: BlockRange): number[] {
  const before = byBlock(one);
  const now = byBlock(other);
  const numbers = new Set([...before.keys(), ...now.keys()]);
  return [...numbers]
    .filter((number) => number >= range.from && number < range.next)
    .filter((number) => before.get(number) !== now.get(number))
    .sort((a, b) => a - b);
}

/** The blocks of a range, ascending, whose times are known in both readings, and not the same. */
export function findMistimedBlocks(one: Reading, other: Reading, range: BlockRange): number[] {
  return [...other.blocks]
    .filter(([number]) => number >= range.from && number < range.next)
    .filter(([number, { timestampMs }]) => {
      const before = one.blocks.get(number)?.timestampMs;
      return before !== undefined && timestampMs !== undefined && before !== timestampMs;
    })
    .map(([number]) => number)
    .sort((a, b) => a - b);
}

/** Returns whether the times of blocks never fall, as they never do along a chain. */
export function areTimesAscending({ blocks }: Pick<StoredTransfers, "blocks">): boolean {
  const times = [...blocks].sort(([a], [b]) => a - b).map(([, { timestampMs = 0 }]) => timestampMs);
  return times.every((time, index) => index === 0 || time >= (times[index - 1] ?? 0));
}

/** Returns whether transfers include all of `part`, at any places within their transactions. */
export function includeAll(
  whole: readonly TransferInsert[],
  part: readonly TransferInsert[],
): boolean {
  const contents = new Set(whole.map(describeContent));
  return part.every((row) => contents.has(describeContent(row)));
}

/** Everything that is stored of each block, as one text. */
function byBlock({ rows, blocks }: Reading): ReadonlyMap<number, string> {
  const lines = new Map<number, string[]>();
  for (const row of rows) {
    const number = blockOfPosition(row.position);
    const ofBlock = lines.get(number);
    if (ofBlock === undefined) lines.set(number, [describeRow(row)]);
    else ofBlock.push(describeRow(row));
  }
  return new Map(
    [...lines].map(([number, ofBlock]) => [
      number,
      [blocks.get(number)?.hash, ...ofBlock.sort()].join("\n"),
    ]),
  );
}
