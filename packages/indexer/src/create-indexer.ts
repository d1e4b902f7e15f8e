import { randomUUID } from "node:crypto";
import { type Clock, type HttpPost, type RpcPoolEvent, systemClock } from "@coinslot/chain";
import type { Database } from "@coinslot/storage";
import type { ChainContext } from "./chain-context.ts";
import {
  type IndexerConfiguration,
  type IndexerConfigurationInput,
  readConfiguration,
} from "./configuration.ts";
import { createEventSignal, type EventSignal } from "./event-signal.ts";
import { followChains } from "./follow-chains.ts";
import type { ProgressTerminal } from "./history/progress.ts";
import type { Indexer } from "./indexer.ts";
import { type IndexerLogger, silentLogger } from "./logger.ts";
import { type ChainRuntime, checkChainId, openChain } from "./open-chain.ts";
import { createChainEvidence } from "./proof/chain-evidence.ts";
import { createIndexerQueries } from "./query/indexer-queries.ts";
import { healthOf, readIndexerStatus } from "./query/read-indexer-status.ts";
import { createToleranceOfLast } from "./rpc/tolerance.ts";
import type { BalanceDifference } from "./spot-check.ts";
import type { IndexerStatus } from "./status.ts";
import { boundTimes } from "./store/bound-times.ts";
import { readChain } from "./store/chain-row.ts";
import { readChecks } from "./store/checks.ts";
import { holdLease } from "./store/hold-lease.ts";
import { createLazyStore, type LazyStore } from "./store/open-store.ts";
import type { IndexerSchema } from "./store/schema.ts";
import type { WriterLease } from "./store/writer-lease.ts";
import { createFirstReaders } from "./verify/first-readers.ts";
import type { Repair } from "./verify/repair.ts";
import { anyBlocks } from "./webhooks/find-returned.ts";
import { type DeliveredWebhook, startWebhooks, type Webhooks } from "./webhooks/start-webhooks.ts";
import { tellEvents } from "./webhooks/tell-events.ts";
import { writeAndTell } from "./webhooks/tell-final.ts";

export type IndexerOptions = IndexerConfigurationInput & {
  /** Default: none. */
  logger?: IndexerLogger | undefined;
  /**
   * Output for a progress bar of history, if it is a terminal. Default: none, and lines in the log.
   */
  terminal?: ProgressTerminal | undefined;
  /** Events of the endpoints, for logs and counters. */
  onRpcEvent?: ((event: RpcPoolEvent & { chain: string }) => void) | undefined;
  /** Differences that the spot check found. */
  onBalanceDifference?: ((difference: BalanceDifference) => void) | undefined;
  /** Faults that second readings found and mended. */
  onRepair?: ((repair: Repair) => void) | undefined;
  /** Attempts to deliver webhooks, for counters. */
  onWebhook?: ((webhook: DeliveredWebhook) => void) | undefined;
  clock?: Clock | undefined;
  /** Unix milliseconds, for signatures of webhooks. Default: the system's clock. */
  now?: (() => number) | undefined;
  /** Chooses blocks to be proven: from 0 up to but not including 1. Default: `Math.random`. */
  random?: (() => number) | undefined;
  /** Transport of RPC requests. Default: `httpPost` of `@coinslot/chain`. */
  post?: HttpPost | undefined;
};

/**
 * Creates an indexer. It follows the chains from `start()` on, and answers queries without it, too.
 *
 * Throws an `IndexerConfigurationError` that names every fault of the options.
 *
 * @example
 * ```ts
 * const indexer = createIndexer({
 *   chains: [indexerChain("plasma", { rpcUrls: ["https://rpc.plasma.to"] })],
 *   database: "sqlite:./indexer.db", // or postgres://…
 * });
 * await indexer.start();
 *
 * const usdt = { blockchain: "plasma", token: "usdt" };
 * const balance = await indexer.readBalance({ ...usdt, address });
 * ```
 */
export function createIndexer(options: IndexerOptions): Indexer {
  const context = createContext(options);
  const { configuration, chains, store, events } = context;
  const { opened } = store;
  const pools = new Map(chains.map(({ chain, trusted }) => [chain.name, trusted]));
  const status = () => readIndexerStatus(opened, { chains, role: context.role });
  return {
    chains: configuration.chains,
    receivers: (configuration.webhooks ?? []).map(({ id, owner }) => ({ id, owner })),
    async ready() {
      await opened();
    },
    start: () => start(context),
    ...createIndexerQueries({ opened, pools }),
    onEvents: events.listen,
    status,
    readHealth: async () => healthOf(await status()),
    async database() {
      return (await opened()).database;
    },
    close: () => close(context),
  };
}

/** The parts and the state of one indexer. */
interface IndexerContext {
  readonly configuration: IndexerConfiguration;
  readonly chains: readonly ChainRuntime[];
  readonly store: LazyStore;
  readonly events: EventSignal;
  readonly logger: IndexerLogger;
  readonly clock: Clock;
  readonly random: () => number;
  readonly onRepair: (repair: Repair) => void;
  readonly onDifference: (difference: BalanceDifference) => void;
  readonly onWebhook: (webhook: DeliveredWebhook) => void;
  readonly now: () => number;
  readonly closing: AbortController;
  role: IndexerStatus["role"];
  following: Promise<void> | undefined;
  delivering: Promise<Webhooks> | undefined;
}

function createContext(options: IndexerOptions): IndexerContext {
  const {
    logger = silentLogger,
    terminal,
    onRpcEvent,
    onBalanceDifference = () => undefined,
    onRepair = () => undefined,
    onWebhook = () => undefined,
    now = Date.now,
    clock = systemClock,
    random = Math.random,
    post,
    ...input
  } = options;
  const configuration = readConfiguration(input);
  const chains = configuration.chains.map((chain) =>
    openChain(chain, { clock, logger, terminal, onRpcEvent, post }),
  );
  const events = createEventSignal();
  const store = createLazyStore({
    url: configuration.database,
    chains: configuration.chains,
    logger,
    onEvents: events.ring,
  });
  return {
    configuration,
    chains,
    store,
    events,
    logger,
    clock,
    random,
    onRepair,
    onDifference: onBalanceDifference,
    onWebhook,
    now,
    closing: new AbortController(),
    role: "standby",
    following: undefined,
    delivering: undefined,
  };
}

async function start(context: IndexerContext): Promise<void> {
  const { configuration, chains, store, events, clock, logger, closing } = context;
  const { database } = await store.opened();
  await Promise.all(chains.map(({ pool }) => checkChainId(pool)));
  const { onWebhook, now } = context;
  const { webhooks: receivers } = configuration;
  context.delivering ??= startWebhooks({
    database,
    receivers,
    events,
    clock,
    now,
    logger,
    onWebhook,
  }).catch((error: unknown) => {
    // The next call tries again: a database may have been away.
    context.delivering = undefined;
    throw error;
  });
  await context.delivering;
  context.following ??= holdLease(
    {
      database,
      url: configuration.database,
      owner: randomUUID(),
      leaseMs: configuration.leaseMs,
      clock,
      logger,
      signal: closing.signal,
      onRole: (role) => {
        context.role = role;
      },
    },
    (lease, signal) => follow(context, lease, signal),
  );
  context.following.catch((error: unknown) =>
    logger.error({ error }, "Following the chains has ended"),
  );
}

/** Follows all chains while this process holds the lease. */
async function follow(
  context: IndexerContext,
  lease: WriterLease,
  signal: AbortSignal,
): Promise<void> {
  const { configuration, chains, store, logger, clock, now, random, onRepair, onDifference } =
    context;
  const { database, tokens } = await store.opened();
  const contexts: ChainContext[] = [];
  const chainIds = chains.map(({ chain }) => chain.chainId);
  await lease.write((transaction) => boundTimes(transaction, chainIds));
  for (const { chain, trusted, outvoted, progress } of chains) {
    const { head_number, head_timestamp_ms, progress_at_ms } = await readChain(
      database,
      chain.chainId,
    );
    // A round of history goes on by an old head, and an outage makes no progress.
    const headAt = Math.min(progress_at_ms, head_timestamp_ms ?? progress_at_ms);
    if (head_number !== null) trusted.recallHead(head_number, now() - headAt);
    const checks = await readChecks(database.kysely, chain.chainId);
    contexts.push({
      chain,
      pool: trusted,
      outvoted,
      progress,
      tokens: tokens.filter(({ chainId }) => chainId === chain.chainId),
      database,
      lease,
      logger,
      clock,
      maxLogs: new Map<number, number>(),
      evidence: createChainEvidence(checks?.proofs),
      firstReaders: createFirstReaders(),
      rewrites: { count: 0 },
      random,
      onRepair,
      toleranceOf: createToleranceOfLast(),
    });
  }
  try {
    await tellMissed(database, lease, chains);
    await followChains(contexts, { spotCheck: configuration.spotCheck, onDifference, signal });
  } finally {
    // The writer alone votes: an endpoint that is back would stay outvoted here.
    for (const { outvoted } of chains) outvoted.clear();
  }
}

/** Tells receivers about the blocks of a writer of the release before, which tells nobody. */
async function tellMissed(
  database: Database<IndexerSchema>,
  lease: WriterLease,
  chains: readonly ChainRuntime[],
): Promise<void> {
  await lease.write((transaction) => tellEvents(transaction, database.dialect));
  for (const { chain } of chains) {
    const { chainId } = chain;
    await writeAndTell({ chainId, database, lease, silent: anyBlocks }, async () => undefined);
  }
}

async function close(context: IndexerContext): Promise<void> {
  const { chains, store, closing, following, delivering } = context;
  closing.abort(new Error("The indexer is closed"));
  // Pools first: a silent node would delay the close. A write under way is finished.
  for (const { pool } of chains) pool.close();
  await following?.catch(() => undefined);
  const webhooks = await delivering?.catch(() => undefined);
  await webhooks?.stop();
  await store.close();
}
