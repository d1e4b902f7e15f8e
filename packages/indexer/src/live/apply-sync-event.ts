import type { ChainContext } from "../chain-context.ts";
import type { Head } from "../rpc/read-head.ts";
import { addTransfers } from "../store/add-transfers.ts";
import type { BlockId } from "../store/block-id.ts";
import { type ChainHead, updateChain } from "../store/chain-row.ts";
import { eventsChannel } from "../store/events.ts";
import type { KnownToken } from "../store/known-token.ts";
import { rollBack } from "../store/roll-back.ts";
import { cutWindow, extendWindow, raiseBase } from "../store/window.ts";
import { joinBatches } from "../transfer-log/join-batches.ts";
import { writeAndTell } from "../webhooks/tell-final.ts";
import { readBlocks } from "./read-blocks.ts";
import type { SyncEvent } from "./sync-event.ts";

export interface ApplyOptions {
  window: readonly [BlockId, ...BlockId[]];
  /** The tokens that are indexed up to the newest block of the window. */
  tokens: readonly KnownToken[];
  signal: AbortSignal;
}

/** Writes the consequences of a sync event, in one transaction. */
export async function applySyncEvent(
  context: ChainContext,
  event: Exclude<SyncEvent, { type: "beyond-finality" }>,
  { window, tokens, signal }: ApplyOptions,
): Promise<void> {
  const { chain, database, lease, logger } = context;
  const { chainId } = chain;
  const { dialect } = database;
  switch (event.type) {
    case "unchanged":
      return tellHead(context, event.head, window);
    case "advanced": {
      const batch = joinBatches(await readTransfers(context, event.blocks, { tokens, signal }));
      await writeAndTell({ chainId, database, lease }, async (transaction) => {
        const [first] = event.blocks;
        const last = event.blocks.at(-1);
        if (first === undefined || last === undefined) return;
        const range = { from: first.number, next: last.number + 1 };
        await addTransfers(transaction, dialect, {
          chainId,
          tokens,
          range,
          batch,
          isAnnounced: true,
        });
        await extendWindow(transaction, chainId, event.blocks);
        const head = chainHead(event.head, last.number, window);
        await raiseBase(transaction, dialect, {
          chainId,
          base: head.finalized,
          keep: chain.maxRewindBlocks,
        });
        const news = { state: "live", problem: null, head, isProgress: true } as const;
        await updateChain(transaction, dialect, { chainId, news });
      });
      if (batch.rows.length > 0) await database.notify(eventsChannel, "");
      return;
    }
    case "reorganised": {
      const { ancestor } = event;
      // The head is not linked to the ancestor yet: behind one URL they may be of two chains. The
      // next blocks, which are, raise finality.
      const finalized = window[0].number;
      await lease.write(async (transaction) => {
        await rollBack(transaction, dialect, { chainId, block: ancestor.number });
        const head = chainHead({ ...event.head, finalized }, ancestor.number, window);
        await updateChain(transaction, dialect, { chainId, news: { head, isProgress: true } });
      });
      const depth = (window.at(-1)?.number ?? ancestor.number) - ancestor.number;
      logger.info({ chain: chain.name, block: ancestor.number, depth }, "The chain reorganised");
      await database.notify(eventsChannel, "");
      return;
    }
    case "fell-behind":
      await lease.write(async (transaction) => {
        await cutWindow(transaction, chainId, { above: -1 });
        const news = { state: "history", isProgress: true } as const;
        await updateChain(transaction, dialect, { chainId, news });
      });
      return;
  }
}

/** The transfers of blocks by their hashes, from any endpoint that has them. */
export async function readTransfers(
  context: ChainContext,
  blocks: readonly BlockId[],
  { tokens, signal }: { tokens: readonly KnownToken[]; signal: AbortSignal },
) {
  if (tokens.length === 0) return [];
  const { pool, database, chain, logger, maxLogs, evidence, toleranceOf, firstReaders } = context;
  const { dialect } = database;
  const tolerates = toleranceOf(`${blocks[0]?.hash} ${tokens.map(({ id }) => id)}`);
  const question = { blocks, tokens, dialect, tolerates, maxLogs, evidence };
  const { batches, reader } = await pool.onEndpoint(
    async (endpoint) => ({
      batches: await readBlocks(endpoint, question),
      reader: endpoint.endpoint,
    }),
    { signal },
  );
  const [first] = blocks;
  const last = blocks.at(-1);
  if (first && last)
    firstReaders.note({ tokens, from: first.number, next: last.number + 1 }, reader);
  const oddities = batches.flatMap((batch) => batch.oddities);
  if (oddities.length > 0)
    logger.warn({ chain: chain.name, oddities }, "Logs that are not transfers");
  return batches;
}

/** Records for other processes that the chain is polled, whether or not it moves. */
async function tellHead(
  { chain: { chainId, maxRewindBlocks }, database, lease }: ChainContext,
  head: Head,
  window: readonly [BlockId, ...BlockId[]],
): Promise<void> {
  const tip = window.at(-1)?.number ?? window[0].number;
  const told = chainHead(head, tip, window);
  await writeAndTell({ chainId, database, lease }, async (transaction) => {
    await raiseBase(transaction, database.dialect, {
      chainId,
      base: told.finalized,
      keep: maxRewindBlocks,
    });
    const news = { state: "live", problem: null, head: told, isProgress: false } as const;
    await updateChain(transaction, database.dialect, { chainId, news });
  });
}

/** Finality never goes back, and nothing above the newest indexed block is final here. */
function chainHead(
  { number, timestampMs, finalized }: Head,
  tip: number,
  [base]: readonly [BlockId, ...BlockId[]],
): ChainHead {
  return {
    number: Math.max(number, tip),
    timestampMs,
    finalized: Math.max(base.number, Math.min(finalized, tip)),
  };
}
