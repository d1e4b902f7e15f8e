import type { ChainContext } from "../chain-context.ts";
import type { GapFilling } from "../history/fill-gaps.ts";
import { addTransfers } from "../store/add-transfers.ts";
import { readCoverage } from "../store/coverage.ts";
import type { KnownToken } from "../store/known-token.ts";
import type { BlockId } from "../store/window.ts";
import { joinBatches } from "../transfer-log/join-batches.ts";
import { readTransfers } from "./apply-sync-event.ts";

/**
 * Lets tokens join live. Returns those that are indexed up to the newest block of the window. One whose coverage ends
 * within the window gets the blocks in between by their hashes; one that misses final blocks has to be filled first.
 */
export async function joinTokens(
  context: ChainContext,
  {
    window,
    signal,
    filling,
  }: {
    window: readonly [BlockId, ...BlockId[]];
    signal: AbortSignal;
    filling: GapFilling;
  },
): Promise<readonly KnownToken[]> {
  const { chain, database, pen, tokens } = context;
  const [base] = window;
  const next = (window.at(-1) ?? base).number + 1;
  const coverage = await readCoverage(database.kysely, tokens);
  const incomplete = tokens.filter(({ id, startBlock }) => {
    const [first, ...others] = coverage.get(id) ?? [];
    const isWhole = first !== undefined && first.from <= startBlock && others.length === 0;
    return startBlock <= base.number && !(isWhole && first.next > base.number);
  });
  if (incomplete.length > 0) filling.begin(incomplete, base.number + 1);

  const live: KnownToken[] = [];
  for (const token of tokens) {
    const covered = coverage.get(token.id)?.at(-1)?.next ?? token.startBlock;
    const from = Math.max(covered, token.startBlock);
    if (from >= next) live.push(token);
    // While it is filled, its coverage may end at the base of a window that has moved on.
    if (from >= next || from <= base.number) continue;
    const blocks = window.filter(({ number }) => number >= from);
    const batch = joinBatches(await readTransfers(context, blocks, { tokens: [token], signal }));
    await pen.write((transaction) =>
      addTransfers(transaction, database.dialect, {
        chainId: chain.chainId,
        tokens: [token],
        range: { from, next },
        batch,
        isAnnounced: false,
      }),
    );
    live.push(token);
  }
  return live;
}
