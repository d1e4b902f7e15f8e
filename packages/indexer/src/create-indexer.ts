import { randomUUID } from "node:crypto";
import {
  type Clock,
  createRpcPool,
  type Fetch,
  RpcNotReadyError,
  type RpcPool,
  type RpcPoolEvent,
  systemClock,
} from "@coinslot/chain";
import { type Database, migrate, openDatabase } from "@coinslot/storage";
import type { ChainContext } from "./chain-context.ts";
import {
  type ChainConfiguration,
  type IndexerConfigurationInput,
  readConfiguration,
} from "./configuration.ts";
import { followChain } from "./follow-chain.ts";
import { createProgress, type Progress, type ProgressTerminal } from "./history/progress.ts";
import type { Indexer } from "./indexer.ts";
import { type IndexerLogger, silentLogger } from "./logger.ts";
import { listTransfers } from "./query/list-transfers.ts";
import { readBalance } from "./query/read-balance.ts";
import { readEventBounds, readEvents } from "./query/read-events.ts";
import { readChainStatus } from "./query/read-status.ts";
import { transfersOfTransaction } from "./query/transfers-of-transaction.ts";
import { UnknownTokenError } from "./query/unknown-token-error.ts";
import { type BalanceDifference, spotCheck } from "./spot-check.ts";
import type { ChainStatus, Health, IndexerStatus } from "./status.ts";
import { indexerMigrations } from "./store/create-tables.ts";
import { EVENTS_CHANNEL } from "./store/events.ts";
import { holdPen } from "./store/hold-pen.ts";
import { knowTokens } from "./store/know-tokens.ts";
import type { KnownToken } from "./store/known-token.ts";
import type { Pen } from "./store/pen.ts";
import type { IndexerSchema } from "./store/schema.ts";
import type { TokenName } from "./transfer.ts";

export type IndexerOptions = IndexerConfigurationInput & {
  /** Default: none. */
  logger?: IndexerLogger | undefined;
  /** Where a bar shows how far history is, if it is a terminal. Default: none, and lines in the log. */
  terminal?: ProgressTerminal | undefined;
  /** What the endpoints do, for logs and counters. */
  onRpcEvent?: ((event: RpcPoolEvent & { chain: string }) => void) | undefined;
  /** What the spot check found. */
  onBalanceDifference?: ((difference: BalanceDifference) => void) | undefined;
  clock?: Clock | undefined;
  /** How RPC requests are sent. Default: the platform's. */
  fetch?: Fetch | undefined;
};

/** One chain of this process. */
interface Line {
  chain: ChainConfiguration;
  pool: RpcPool;
  progress: Progress;
}

/** What is known once the database is open. */
interface Opened {
  database: Database<IndexerSchema>;
  tokens: readonly KnownToken[];
}

const POLL_EVENTS_MS = 1_000;

/** Makes an indexer. Throws an `IndexerConfigurationError` with all that is wrong with the options. */
export function createIndexer(options: IndexerOptions): Indexer {
  const {
    logger = silentLogger,
    terminal,
    onRpcEvent,
    onBalanceDifference,
    clock = systemClock,
    fetch,
    ...input
  } = options;
  const configuration = readConfiguration(input);
  const lines = configuration.chains.map(
    (chain): Line => ({
      chain,
      pool: createRpcPool({
        chainId: chain.chainId,
        rpcUrls: chain.rpcUrls,
        timeoutMs: chain.requestTimeoutMs,
        clock,
        ...(chain.callsPerSecond !== undefined && { callsPerSecond: chain.callsPerSecond }),
        ...(fetch !== undefined && { fetch }),
        onEvent: (event) => onRpcEvent?.({ ...event, chain: chain.name }),
      }),
      progress: createProgress({ chain: chain.name, logger, clock, terminal }),
    }),
  );
  const closing = new AbortController();
  const eventListeners = new Set<() => void>();
  let role: IndexerStatus["role"] = "standby";
  let opening: Promise<Opened> | undefined;
  let following: Promise<void> | undefined;

  function opened(): Promise<Opened> {
    opening ??= open().catch((error: unknown) => {
      // The next who asks tries again.
      opening = undefined;
      throw error;
    });
    return opening;
  }

  async function open(): Promise<Opened> {
    closing.signal.throwIfAborted();
    const database = await openDatabase<IndexerSchema>({
      url: configuration.database,
      // What a crash of the machine takes from the end of the log is read from the chain again.
      durable: false,
      applicationName: "coinslot-indexer",
      onBackgroundError: (error) => logger.warn({ error }, "The database complained"),
    });
    try {
      await migrate(database, { name: "indexer", migrations: indexerMigrations });
      const tokens: KnownToken[] = [];
      for (const { chain } of lines) tokens.push(...(await knowTokens(database, chain)));
      await database.listen(EVENTS_CHANNEL, tellListeners);
      return { database, tokens };
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  function tellListeners(): void {
    for (const listener of [...eventListeners]) listener();
  }

  async function find({ blockchain, token }: TokenName) {
    const { database, tokens } = await opened();
    const line = lines.find(({ chain }) => chain.name === blockchain);
    const known = tokens.find((each) => each.blockchain === blockchain && each.token === token);
    if (line === undefined || known === undefined)
      throw new UnknownTokenError({ blockchain, token });
    return { database, token: known, pool: line.pool };
  }

  async function follow(pen: Pen, signal: AbortSignal): Promise<void> {
    const { database, tokens } = await opened();
    await Promise.all(
      lines.map(async ({ chain, pool, progress }) => {
        const own = tokens.filter(({ chainId }) => chainId === chain.chainId);
        const context: ChainContext = {
          chain,
          tokens: own,
          pool,
          database,
          pen,
          logger,
          clock,
          mostLogs: new Map(),
          progress,
        };
        const work = [followChain(context, signal)];
        if (configuration.spotCheck !== undefined) {
          const onDifference = onBalanceDifference ?? (() => undefined);
          work.push(spotCheck(context, { ...configuration.spotCheck, signal, onDifference }));
        }
        await Promise.all(work);
      }),
    );
    // A chain that has stopped leaves the pen to the others, and to nobody else.
    if (!signal.aborted) await aborted(signal);
  }

  return {
    chains: configuration.chains,
    async ready() {
      await opened();
    },
    async start() {
      const { database } = await opened();
      await Promise.all(lines.map(({ pool }) => refuseWrongChain(pool)));
      following ??= holdPen(
        {
          database,
          url: configuration.database,
          owner: randomUUID(),
          leaseMs: configuration.leaseMs,
          clock,
          logger,
          signal: closing.signal,
          onRole: (next) => {
            role = next;
          },
        },
        follow,
      );
      following.catch((error: unknown) =>
        logger.error({ error }, "Following the chains has ended"),
      );
    },
    async readTransfers(query) {
      const { database, token } = await find(query);
      return listTransfers(database, token, query);
    },
    async readTransactionTransfers(query) {
      const { database, token } = await find(query);
      return transfersOfTransaction(database, token, query.transactionHash);
    },
    async readBalance(query) {
      const { database, token, pool } = await find(query);
      return readBalance({ database, pool }, { token, address: query.address });
    },
    async readEvents(query) {
      const { database, token } = await find(query);
      return readEvents(database, { ...query, token });
    },
    async readLastEventId() {
      const { database } = await opened();
      return (await readEventBounds(database)).last;
    },
    onEvents(listener) {
      eventListeners.add(listener);
      // On SQLite a writer in another process cannot notify; on PostgreSQL a notification may be lost.
      const timer = setInterval(listener, POLL_EVENTS_MS);
      timer.unref();
      return () => {
        clearInterval(timer);
        eventListeners.delete(listener);
      };
    },
    status,
    async readHealth() {
      const { health, database, chains } = await status();
      return {
        status: health,
        isDatabaseHealthy: database === "healthy",
        tokens: chains.flatMap((chain) =>
          chain.tokens.map(({ name, indexedTo, health: tokenHealth }) => ({
            blockchain: chain.name,
            token: name,
            isHealthy: tokenHealth === "healthy",
            lag:
              chain.head === undefined || indexedTo === undefined
                ? undefined
                : chain.head - indexedTo,
            rpcLatencyMs: chain.rpcLatencyMs,
          })),
        ),
      };
    },
    async database() {
      return (await opened()).database;
    },
    async close() {
      closing.abort(new Error("The indexer is closed"));
      await following?.catch(() => undefined);
      for (const { pool } of lines) pool.close();
      const { database } = (await opening?.catch(() => undefined)) ?? {};
      await database?.close();
    },
  };

  async function status(): Promise<IndexerStatus> {
    try {
      const { database, tokens } = await opened();
      const chains = await Promise.all(
        lines.map(({ chain, pool, progress }) =>
          readChainStatus(database, {
            chain,
            tokens: tokens.filter(({ chainId }) => chainId === chain.chainId),
            pace: progress.pace(),
            rpcLatencyMs: fastest(pool),
          }),
        ),
      );
      return {
        health: worst(chains.map(({ health }) => health)),
        role,
        database: "healthy",
        chains,
      };
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      const chains = lines.map(({ chain }) => withoutDatabase(chain, problem));
      return { health: "unhealthy", role, database: "unhealthy", chains };
    }
  }
}

/** An endpoint that is down now may come back; one of another chain must never be used. */
async function refuseWrongChain(pool: RpcPool): Promise<void> {
  try {
    await pool.ready();
  } catch (error) {
    if (error instanceof RpcNotReadyError && error.retryable) return;
    throw error;
  }
}

function withoutDatabase(
  { name, chainId, tokens }: ChainConfiguration,
  problem: string,
): ChainStatus {
  return {
    name,
    chainId,
    state: "waiting",
    health: "unhealthy",
    problem,
    head: undefined,
    finalized: undefined,
    lagBlocks: undefined,
    sinceProgressMs: undefined,
    rpcLatencyMs: undefined,
    eventsPerSecond: undefined,
    secondsLeft: undefined,
    tokens: tokens.map((token) => ({
      name: token.name,
      indexedTo: undefined,
      health: "unhealthy",
    })),
  };
}

function worst(healths: readonly Health[]): Health {
  if (healths.includes("unhealthy")) return "unhealthy";
  return healths.includes("degraded") ? "degraded" : "healthy";
}

function fastest(pool: RpcPool): number | undefined {
  const latencies = pool.status().flatMap(({ latencyMs }) => latencyMs ?? []);
  return latencies.length === 0 ? undefined : Math.min(...latencies);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
