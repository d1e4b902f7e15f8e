import { sleep } from "@coinslot/chain";
import type { ChainContext } from "./chain-context.ts";
import { indexHistory } from "./history/index-history.ts";
import { readHeaders } from "./rpc/block-header.ts";
import { readHead } from "./rpc/read-head.ts";
import { readChain, updateChain } from "./store/chain-row.ts";
import { readCoverage } from "./store/coverage.ts";
import type { KnownToken } from "./store/known-token.ts";
import { addMark } from "./store/marks.ts";
import { extendWindow } from "./store/window.ts";

/**
 * Indexes all that is final now, and lays the base of the window on top: from history to live. Live
 * reads the blocks that become final meanwhile. If those are many, the first poll leads back here.
 * So a chain as fast as the indexer does not stay in history for ever.
 */
export async function catchUp(context: ChainContext, signal: AbortSignal): Promise<void> {
  const { chain, database, lease, pool, clock } = context;
  const { chainId } = chain;
  const { dialect } = database;
  const { announced_from, finalized_number } = await readChain(database, chainId);
  const { number, timestampMs, finalized } = await pool.onEndpoint(
    async (endpoint) => {
      const head = await readHead(endpoint, { chain, pool });
      // An endpoint that reports a head before it exists lacks this block too; history would wait
      // for it.
      await readHeaders(endpoint, [head.finalized]);
      return head;
    },
    { signal },
  );
  const { leading, furthest } = await findLeadingTokens(context);
  // An endpoint that lags does not take the finality of indexed blocks back.
  const indexedFinal = Math.min(finalized_number ?? 0, furthest - 1);
  const head = {
    number: Math.max(number, indexedFinal),
    timestampMs,
    finalized: Math.max(finalized, indexedFinal),
  };
  const news = { state: "history" as const, head, isProgress: false };
  await lease.write((transaction) => updateChain(transaction, dialect, { chainId, news }));

  await indexHistory(context, {
    tokens: leading,
    next: finalized + 1,
    // Transfers below the newest indexed block were announced before: a reindex does not retract
    // them.
    announcedFrom: announced_from === null ? undefined : Math.max(announced_from, furthest),
    isBesideLive: false,
    signal,
  });
  // An endpoint that lags knows less than is indexed: no ground to build on.
  if (furthest > finalized + 1) return sleep(clock, chain.pollIntervalMs, signal);
  const [base] = await pool.onEndpoint((endpoint) => readHeaders(endpoint, [finalized]), {
    minBlock: BigInt(finalized),
    signal,
  });
  if (base === undefined) return;
  await lease.write(async (transaction) => {
    await extendWindow(transaction, chainId, [base]);
    await addMark(transaction, dialect, { chainId, block: base, keep: chain.maxRewindBlocks });
    const announcedFrom = announced_from ?? finalized + 1;
    await updateChain(transaction, dialect, {
      chainId,
      news: {
        state: "live",
        problem: null,
        announced_from: announcedFrom,
        ...(announced_from === null && { told_from: announcedFrom }),
        isProgress: true,
      },
    });
  });
}

/**
 * The tokens that decide when live begins: those that are furthest, and those that start above
 * them. The others were added later. They are filled beside live, so that they do not delay it.
 */
async function findLeadingTokens({ database, tokens }: ChainContext) {
  const coverage = await readCoverage(database.kysely, tokens);
  const nextOf = ({ id }: KnownToken) => coverage.get(id)?.at(-1)?.next ?? 0;
  const furthest = Math.max(...tokens.map(nextOf));
  const leading = tokens.filter((token) => Math.max(nextOf(token), token.startBlock) >= furthest);
  return { leading, furthest };
}
