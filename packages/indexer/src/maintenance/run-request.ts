import type { Dialect } from "@coinslot/storage";
import type { Transaction } from "kysely";
import type { ChainContext } from "../chain-context.ts";
import { readChain, updateChain } from "../store/chain-row.ts";
import { updateChecks } from "../store/checks.ts";
import { type BlockRange, findVerifiedTo, readCoverage, uncoverRange } from "../store/coverage.ts";
import { eventsChannel, forgetEvents } from "../store/events.ts";
import { findTokenIds, forgetRange, resetBalances } from "../store/forget-range.ts";
import type { KnownToken } from "../store/known-token.ts";
import { maxBlock } from "../store/position.ts";
import { findBlockOfRowBelow } from "../store/read-stored.ts";
import {
  addRequest,
  cutRequests,
  endRequest,
  findVerifyAfter,
  rangeOfRequest,
  type WriterRequest,
} from "../store/requests.ts";
import { rollBack } from "../store/roll-back.ts";
import type { IndexerSchema } from "../store/schema.ts";
import { readWindow } from "../store/window.ts";

/** The part of a chain's context that a request needs. */
type Maintained = Pick<ChainContext, "tokens" | "database" | "logger" | "rewrites"> & {
  chain: Pick<ChainContext["chain"], "chainId" | "name">;
  lease: Pick<ChainContext["lease"], "write">;
};

/** Transfers of a token that are taken back in one transaction. */
const rowsAtOnce = 5_000;

/**
 * Executes a request, in steps of one transaction each. A request stays open until its last step,
 * so a process that dies in between leaves it to the next.
 */
export async function runRequest(
  context: Maintained,
  request: WriterRequest,
  signal: AbortSignal,
): Promise<void> {
  const { chain, logger } = context;
  const { kind, from_block: from, next_block: next } = request;
  logger.info({ chain: chain.name, kind, from, next }, "A request begins");
  switch (kind) {
    case "verify":
      await verifyAgain(context, request);
      break;
    case "reindex":
      await reindex(context, request, signal);
      break;
    case "rewind":
      await rewind(context, request, signal);
      break;
  }
  logger.info({ chain: chain.name, kind, from, next }, "A request is done");
}

async function verifyAgain(
  { database: { dialect }, lease, rewrites }: Maintained,
  request: WriterRequest,
): Promise<void> {
  rewrites.count += 1;
  await lease.write((transaction) => unverify(transaction, dialect, request));
}

/**
 * Blocks that were read twice count as read once from now on. The request, which is done, keeps the
 * newest of them: they were final, so no rewind without a command may go deep below it. `atLeast`:
 * what a request that was done before keeps already.
 */
async function unverify(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  request: WriterRequest,
  atLeast = 0,
): Promise<void> {
  const tokenIds = await findTokenIds(transaction, request.chain_id, request.token_id);
  const range = rangeOfRequest(request);
  const verifiedTo = await findVerifiedTo(transaction, request.chain_id);
  await uncoverRange(transaction, "indexer_verified_ranges", { tokenIds, range });
  await endRequest(transaction, dialect, request.id, {
    next_block: Math.max(atLeast, Math.min(range.next, verifiedTo + 1)),
  });
}

/**
 * Forgets final blocks, the highest first; history finds that they are missing. The base of the
 * window stays, and is only read again; during history, the newest indexed block of each token. So
 * it stays known up to where a token was announced, and the blocks above are announced once. A
 * request to verify them again comes first, and keeps how far they were verified.
 */
async function reindex(
  { chain, database, lease, rewrites }: Maintained,
  request: WriterRequest,
  signal: AbortSignal,
): Promise<void> {
  const { kysely, dialect } = database;
  const { chainId } = chain;
  const range = rangeOfRequest(request);
  const tokenIds = await findTokenIds(kysely, chainId, request.token_id);
  const [base] = await readWindow(kysely, chainId);
  const coverage = await readCoverage(
    kysely,
    tokenIds.map((id) => ({ id })),
  );
  rewrites.count += 1;
  await lease.write(async (transaction) => {
    const { token_id: tokenId, from_block: from, next_block: next } = request;
    const again = { chainId, kind: "verify", tokenId, from, next } as const;
    // A reindex that has failed begins anew.
    const before = await findVerifyAfter(transaction, request);
    const id = before?.id ?? (await addRequest(transaction, dialect, again));
    await unverify(transaction, dialect, { ...request, id }, before?.next_block ?? 0);
  });
  for (const tokenId of tokenIds) {
    let next = Math.min(range.next, findKept(tokenId));
    while (next > range.from) {
      signal.throwIfAborted();
      const step = { from: Math.max(range.from, await findStep(tokenId, next)), next };
      rewrites.count += 1;
      await lease.write((transaction) =>
        forgetRange(transaction, dialect, { chainId, tokenIds: [tokenId], range: step }),
      );
      next = step.from;
    }
  }
  await lease.write(async (transaction) => {
    await uncoverRange(transaction, "indexer_verified_ranges", { tokenIds, range });
    for (const tokenId of tokenIds)
      await resetBalances(transaction, dialect, { tokenId, below: findKept(tokenId) });
    await endRequest(transaction, dialect, request.id);
  });

  /** The first block that stays. Blocks above the base belong to live; a rewind takes them back. */
  function findKept(tokenId: number): number {
    const newest = coverage.get(tokenId)?.at(-1);
    return base?.number ?? (newest === undefined ? maxBlock : newest.next - 1);
  }

  async function findStep(tokenId: number, below: number): Promise<number> {
    const options = { tokenIds: [tokenId], below, count: rowsAtOnce };
    const block = await findBlockOfRowBelow(kysely, options);
    return block === undefined ? 0 : Math.min(block + 1, below - 1);
  }
}

/**
 * Takes back everything above a block, the newest first, and announces retractions to readers of
 * events. Where these cannot tell all, since blocks are missing, readers find a gap instead.
 */
async function rewind(
  { chain, tokens, database, lease, logger, rewrites }: Maintained,
  request: WriterRequest,
  signal: AbortSignal,
): Promise<void> {
  const { kysely, dialect } = database;
  const { chainId } = chain;
  const target = request.from_block - 1;
  const tokenIds = await findTokenIds(kysely, chainId, null);
  const { announced_from: announcedFrom, told_from } = await readChain(database, chainId);
  const told = { told_from: told_from ?? announcedFrom };
  let missing =
    announcedFrom === null
      ? undefined
      : findMissing(await readCoverage(kysely, tokens), tokens, { announcedFrom, target });
  let top = Number.MAX_SAFE_INTEGER;
  while (top > target) {
    signal.throwIfAborted();
    const block = await findBlockOfRowBelow(kysely, { tokenIds, below: top, count: rowsAtOnce });
    const step = Math.max(target, Math.min(block ?? target, top - 1));
    rewrites.count += 1;
    await lease.write(async (transaction) => {
      await rollBack(transaction, dialect, { chainId, block: step });
      if (missing !== undefined) await startReadersAnew(transaction, missing);
      if (step === target) await endRewind(transaction);
    });
    missing = undefined;
    await database.notify(eventsChannel, "");
    logger.info({ chain: chain.name, block: step, target }, "Rewinding");
    top = step;
  }

  /** The history that readers find now has no missing blocks: these are announced to them. */
  async function startReadersAnew(
    transaction: Parameters<typeof rollBack>[0],
    lowest: number,
  ): Promise<void> {
    await forgetEvents(transaction, dialect);
    const announced_from = Math.min(announcedFrom ?? lowest, lowest);
    await updateChain(transaction, dialect, {
      chainId,
      news: { announced_from, ...told, isProgress: true },
    });
  }

  async function endRewind(transaction: Parameters<typeof rollBack>[0]): Promise<void> {
    const { announced_from } = await readChain({ kysely: transaction }, chainId);
    const isEmpty = (await readWindow(transaction, chainId)).length === 0;
    await updateChain(transaction, dialect, {
      chainId,
      news: {
        ...(isEmpty && { state: "history" as const }),
        problem: null,
        // Transfers that replace announced ones are announced, too.
        announced_from: announced_from && Math.min(announced_from, target + 1),
        ...told,
        isProgress: true,
      },
    });
    await updateChecks(transaction, dialect, { chainId, news: { doubted_from: null } });
    await cutRequests(transaction, { chainId, next: target + 1 });
    await endRequest(transaction, dialect, request.id);
  }
}

/**
 * The lowest missing block, if history announces missing blocks after a rewind to `target`. No
 * retraction can name their transfers, which readers may know. Missing blocks below an indexed one
 * that stays are filled without an event. Those of a token without configuration are not filled.
 */
function findMissing(
  coverage: ReadonlyMap<number, readonly BlockRange[]>,
  tokens: readonly KnownToken[],
  { announcedFrom, target }: { announcedFrom: number; target: number },
): number | undefined {
  const rangesOf = ({ id }: KnownToken) => coverage.get(id) ?? [];
  const kept = tokens
    .flatMap(rangesOf)
    .filter(({ from }) => from <= target)
    .map(({ next }) => Math.min(next, target + 1));
  const silentBelow = Math.max(Math.min(announcedFrom, target + 1), ...kept);
  const missing = tokens
    .flatMap((token) =>
      rangesOf(token).map(({ from }, index, ranges) => ({
        from: ranges[index - 1]?.next ?? token.startBlock,
        next: from,
      })),
    )
    .filter(({ from, next }) => from < next);
  if (!missing.some(({ next }) => next > silentBelow)) return undefined;
  return Math.min(...missing.map(({ from }) => from));
}
