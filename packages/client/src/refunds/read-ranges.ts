/** Bound of the questions about one range: a public node allows some thousand blocks in each. */
const maxQuestions = 1_000;

/**
 * Reads a range of blocks in steps that a node accepts: all of it at first, half as much after each
 * refusal, and twice as much after a success.
 *
 * @returns the results, and the last block that was read: less than `to` once the questions are
 * used up
 * @throws the node's error for a single block
 */
export async function readRanges<Item>(
  { from, to }: { from: bigint; to: bigint },
  read: (from: bigint, to: bigint) => Promise<readonly Item[]>,
): Promise<{ items: Item[]; readTo: bigint }> {
  const items: Item[] = [];
  let next = from;
  let size = to - from + 1n;
  for (let questions = 0; next <= to && questions < maxQuestions; questions += 1) {
    const last = next + size - 1n < to ? next + size - 1n : to;
    try {
      items.push(...(await read(next, last)));
    } catch (error) {
      size = (last - next + 1n) / 2n;
      if (size === 0n) throw error;
      continue;
    }
    next = last + 1n;
    size *= 2n;
  }
  return { items, readTo: next - 1n };
}
