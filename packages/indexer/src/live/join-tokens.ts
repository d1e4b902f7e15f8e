import type { ChainContext } from "../chain-context.ts";
import type { GapFilling } from "../history/fill-gaps.ts";
import { addTransfers } from "../store/add-transfers.ts";
import type { BlockId } from "../store/block-id.ts";
import { readCoverage } from "../store/coverage.ts";
import type { KnownToken } from "../store/known-token.ts";
import { joinBatches } from "../transfer-log/join-batches.ts";
import { readTransfers } from "./apply-sync-event.ts";

/** Live waits for a gap below the window of at most this many blocks. */
const fewBlocks = 64;
/** Maximum wait: an endpoint may refuse them, and requests and replaced blocks wait as well. */
const maxWaitMs = 2_000;

/**
 * Lets tokens join live. Returns those that are indexed up to the newest block of the window. A
 * token whose coverage ends within the window gets the blocks in between by their hashes. A token
 * that misses final blocks has to be filled first.
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
  const { chain, database, lease, tokens } = context;
  const [base] = window;
  const next = (window.at(-1) ?? base).number + 1;
  let coverage = await readCoverage(database.kysely, tokens);
  const incomplete = tokens.flatMap((token) => {
    const [first, ...others] = coverage.get(token.id) ?? [];
    const isWhole = first !== undefined && first.from <= token.startBlock && others.length === 0;
    const missing = isWhole ? base.number + 1 - first.next : Number.POSITIVE_INFINITY;
    return token.startBlock <= base.number && missing > 0 ? { token, missing } : [];
  });
  if (incomplete.length > 0) {
    // The base moves on with the chain. A token that misses only a few blocks below it would never
    // catch up.
    const isWaitedFor = incomplete.every(({ missing }) => missing <= fewBlocks);
    if (isWaitedFor) await filling.endedWithin(maxWaitMs);
    filling.begin(
      incomplete.map(({ token }) => token),
      base.number + 1,
    );
    if (isWaitedFor) await filling.endedWithin(maxWaitMs);
    coverage = await readCoverage(database.kysely, tokens);
  }

  const live: KnownToken[] = [];
  for (const token of tokens) {
    const covered = coverage.get(token.id)?.at(-1)?.next ?? token.startBlock;
    const from = Math.max(covered, token.startBlock);
    if (from >= next) live.push(token);
    // While it is filled, its coverage may end at the base of a window that has moved on.
    if (from >= next || from <= base.number) continue;
    const blocks = window.filter(({ number }) => number >= from);
    const batch = joinBatches(await readTransfers(context, blocks, { tokens: [token], signal }));
    await lease.write((transaction) =>
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
