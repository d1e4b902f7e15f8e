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
 * From history to live: indexes all that is final now, and lays the base of the window on top. What became final
 * meanwhile is live's to read, or, if that is much, the first look leads back here: so a chain that is as fast as we
 * are does not keep us in history for ever.
 */
export async function catchUp(context: ChainContext, signal: AbortSignal): Promise<void> {
  const { chain, database, lease, pool, clock } = context;
  const { chainId } = chain;
  const { dialect } = database;
  const { announced_from } = await readChain(database, chainId);
  const { latest, finalized } = await pool.onEndpoint(
    async (endpoint) => {
      const head = await readHead(endpoint, chain);
      // Who tells a head that is not there yet does not have this block either; we would wait for it.
      await readHeaders(endpoint, [head.finalized]);
      return head;
    },
    { signal },
  );
  const news = {
    state: "history",
    head: { number: latest.number, timestampMs: latest.timestampMs, finalized },
    isProgress: false,
  } as const;
  await lease.write((transaction) => updateChain(transaction, dialect, { chainId, news }));

  const { leading, furthest } = await findLeadingTokens(context);
  await indexHistory(context, {
    tokens: leading,
    next: finalized + 1,
    announcedFrom: announced_from ?? undefined,
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
      news: { state: "live", problem: null, announced_from: announcedFrom, isProgress: true },
    });
  });
}

/**
 * The tokens that decide when live begins: those that are furthest, and those that start above them. The others were
 * added later, and are filled beside live, lest they keep everybody waiting.
 */
async function findLeadingTokens({ database, tokens }: ChainContext) {
  const coverage = await readCoverage(database.kysely, tokens);
  const nextOf = ({ id }: KnownToken) => coverage.get(id)?.at(-1)?.next ?? 0;
  const furthest = Math.max(...tokens.map(nextOf));
  const leading = tokens.filter((token) => Math.max(nextOf(token), token.startBlock) >= furthest);
  return { leading, furthest };
}
