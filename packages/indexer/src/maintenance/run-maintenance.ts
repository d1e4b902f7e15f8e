import { type Clock, sleep, systemClock } from "@coinslot/chain";
import type { Database } from "@coinslot/storage";
import { type IndexerConfigurationInput, readConfiguration } from "../configuration.ts";
import { createIndexer } from "../create-indexer.ts";
import type { IndexedToken, Indexer } from "../indexer.ts";
import type { IndexerLogger } from "../logger.ts";
import type { ChainStatus } from "../status.ts";
import { hexOfBytes } from "../store/bytes.ts";
import { readChain } from "../store/chain-row.ts";
import { type BlockRange, readCoverage } from "../store/coverage.ts";
import type { KnownToken } from "../store/known-token.ts";
import { hasPosition } from "../store/position.ts";
import { addRequest, type WriterRequest } from "../store/requests.ts";
import type { IndexerSchema } from "../store/schema.ts";

/** Maintenance of indexed blocks. */
export interface MaintenanceWish {
  /**
   * `verify`: read them once more, and mend differences. `reindex`: forget them, and read them
   * anew. `rewind`: take back everything above a block, with retractions.
   */
  kind: "verify" | "reindex" | "rewind";
  /** The chain's name in the configuration. */
  chain: string;
  /** The token's name; undefined: all of the chain. */
  token?: string | undefined;
  /** Both inclusive. `rewind` takes `from`: the lowest block that is taken back. */
  from: number;
  to?: number | undefined;
}

export interface MaintenanceProgress {
  /** `waiting`: the writing process has not taken it up. */
  phase: "waiting" | "working" | "done";
  /** Share of the blocks that were final when it was requested, and still are, from 0 to 1. */
  share: number;
  /** Wrongly stored blocks that were mended since it began. */
  repairedBlocks: number;
  /** Reason for which the chain is not healthy, which may keep the maintenance waiting. */
  problem?: string | undefined;
}

/** The request names an unknown chain or token, or blocks that maintenance cannot change. */
export class MaintenanceError extends Error {
  override readonly name = "MaintenanceError";
}

/** The chain is stopped, and its endpoints are not back: the maintenance would wait for ever. */
class ChainStaysStoppedError extends Error {
  override readonly name = "ChainStaysStoppedError";
}

const pollMs = 200;
/**
 * A chain that was stopped before is live again after the first poll, if its endpoints are back.
 * One that is silent takes its time limit for that, and this longer is waited.
 */
const stoppedPatienceMs = 2_000;

/**
 * Requests maintenance of the writing process, and follows it to its end. Where no process has the
 * writer lease, this one takes it until the end. Where a service has it, the service works, and
 * goes on when this process has ended. Throws a `MaintenanceError`, an `IndexerConfigurationError`,
 * or the signal's reason. Where the chain stays stopped, it throws an error with the chain's
 * problem.
 */
export async function runMaintenance(options: {
  configuration: IndexerConfigurationInput;
  wish: MaintenanceWish;
  logger: IndexerLogger;
  signal: AbortSignal;
  onProgress: (progress: MaintenanceProgress) => void;
  clock?: Clock;
}): Promise<MaintenanceProgress> {
  const { configuration, wish, logger, signal, onProgress, clock = systemClock } = options;
  const indexer = createIndexer({ ...configuration, logger });
  try {
    const { chains } = readConfiguration(configuration);
    const chain = chains.find(({ name }) => name === wish.chain);
    if (chain === undefined)
      throw new MaintenanceError(
        `Unknown chain ${wish.chain}; known are ${chains.map(({ name }) => name).join(", ")}`,
      );
    const tokens = chain.tokens.filter(({ name }) => (wish.token ?? name) === name);
    if (tokens.length === 0)
      throw new MaintenanceError(
        `Unknown token ${wish.token} on ${chain.name}; known are ${chain.tokens.map(({ name }) => name).join(", ")}`,
      );
    refuseRange(wish);
    const database = await indexer.database();
    const last = await findLastBlock(indexer, wish);
    const known = await findTokens(database, { chainId: chain.chainId, tokens });
    const repairedBefore = (await readStatus(indexer, chain.name))?.repairedBlocks ?? 0;
    const id = await addRequest(database.kysely, database.dialect, {
      chainId: chain.chainId,
      kind: wish.kind,
      tokenId: wish.token === undefined ? undefined : known[0]?.id,
      from: wish.from,
      next: wish.to === undefined ? undefined : wish.to + 1,
    });
    await indexer.start();
    const patienceMs = chain.requestTimeoutMs + stoppedPatienceMs;
    let stoppedSince: number | undefined;
    for (;;) {
      signal.throwIfAborted();
      const { phase, share } = await readProgress(indexer, { wish, tokens: known, id, last });
      const status = await readStatus(indexer, chain.name);
      const repairedBlocks = (status?.repairedBlocks ?? 0) - repairedBefore;
      const problem = status?.health === "healthy" ? undefined : status?.problem;
      const progress = { phase, share, repairedBlocks, ...(problem !== undefined && { problem }) };
      onProgress(progress);
      if (phase === "done") return progress;
      const isWaiting = phase === "working" || wish.kind === "reindex";
      const isStopped = isWaiting && status?.state === "stopped";
      stoppedSince = isStopped ? (stoppedSince ?? clock.now()) : undefined;
      if (stoppedSince !== undefined && clock.now() - stoppedSince >= patienceMs)
        throw new ChainStaysStoppedError(
          `${chain.name} is stopped, so ${wish.kind} waits until it is not. ${problem ?? ""}`,
        );
      await sleep(clock, pollMs, signal);
    }
  } finally {
    await indexer.close();
  }
}

/**
 * A request with a block that no database can hold would fail again and again, and block all other
 * work.
 */
function refuseRange({ from, to = from }: MaintenanceWish): void {
  const wrong = [from, to].find((block) => !hasPosition(block, 0));
  if (wrong !== undefined) throw new MaintenanceError(`${wrong} is not the number of a block`);
  if (to < from) throw new MaintenanceError(`Block ${to} is below block ${from}`);
}

/**
 * The last block of the request, among those that are final now. A growing chain always has some
 * that were not read twice. Throws a `MaintenanceError` where there is nothing to be done.
 */
async function findLastBlock(indexer: Indexer, { kind, chain, from, to }: MaintenanceWish) {
  const status = (await indexer.status()).chains.find(({ name }) => name === chain);
  const { head, finalized } = status ?? {};
  // Its known blocks are the way back: without them no common block is found.
  if (kind === "reindex" && status?.state === "stopped")
    throw new MaintenanceError(`${chain} is stopped, so nothing is deleted. ${status.problem}`);
  if (kind === "reindex" && status?.doubtedFrom !== undefined)
    throw new MaintenanceError(`${chain} is in doubt, so nothing is deleted. ${status.problem}`);
  if (finalized === undefined)
    throw new MaintenanceError(
      `Nothing of ${chain} is indexed in this database yet: there is nothing to ${kind}`,
    );
  const end = kind === "rewind" ? (head ?? finalized) : finalized;
  if (from > end)
    throw new MaintenanceError(
      kind === "rewind"
        ? `Block ${from - 1} is not below the head of ${chain}, which is block ${end}`
        : `Block ${from} of ${chain} is not final yet: the last final one is block ${end}`,
    );
  return Math.min(to ?? end, end);
}

/** A token's row in the database, and its start block. */
type TokenStart = Pick<KnownToken, "id" | "startBlock">;

async function findTokens(
  { kysely }: Database<IndexerSchema>,
  { chainId, tokens }: { chainId: number; tokens: readonly IndexedToken[] },
): Promise<TokenStart[]> {
  const rows = await kysely
    .selectFrom("indexer_tokens")
    .select(["id", "address"])
    .where("chain_id", "=", chainId)
    .execute();
  return tokens.flatMap(({ address, startBlock }) => {
    const row = rows.find((each) => hexOfBytes(each.address) === address);
    return row ? [{ id: row.id, startBlock }] : [];
  });
}

async function readStatus(indexer: Indexer, chain: string): Promise<ChainStatus | undefined> {
  return (await indexer.status()).chains.find(({ name }) => name === chain);
}

async function readProgress(
  indexer: Indexer,
  {
    wish,
    tokens,
    id,
    last,
  }: { wish: MaintenanceWish; tokens: readonly TokenStart[]; id: number; last: number },
): Promise<Pick<MaintenanceProgress, "phase" | "share">> {
  const { kysely } = await indexer.database();
  const request: WriterRequest = await kysely
    .selectFrom("indexer_requests")
    .selectAll()
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
  if (request.done_at_ms === null) return { phase: "waiting", share: 0 };
  if (wish.kind === "rewind") return { phase: "done", share: 1 };
  // A rewind takes blocks back, and the chain in their place may be shorter: a block that may never
  // come is not waited for.
  const { finalized_number } = await readChain({ kysely }, request.chain_id);
  const end = Math.min(last, finalized_number ?? last);
  const verified = await readCoverage(kysely, tokens, "indexer_verified_ranges");
  const shares = tokens.map((token) =>
    shareOf(verified.get(token.id) ?? [], {
      from: Math.max(wish.from, token.startBlock),
      next: end + 1,
    }),
  );
  const share = Math.min(1, ...shares);
  return { phase: share >= 1 ? "done" : "working", share };
}

function shareOf(ranges: readonly BlockRange[], whole: BlockRange): number {
  const size = whole.next - whole.from;
  if (size <= 0) return 1;
  const covered = ranges.map(
    ({ from, next }) => Math.min(next, whole.next) - Math.max(from, whole.from),
  );
  return covered.reduce((sum, part) => sum + Math.max(0, part), 0) / size;
}
