import { randomUUID } from "node:crypto";
import {
  type Clock,
  createRpcPool,
  type HttpPost,
  RpcNotReadyError,
  type RpcPool,
  type RpcPoolEvent,
  systemClock,
} from "@coinslot/chain";
import {
  type ChainConfiguration,
  type IndexerConfigurationInput,
  readConfiguration,
} from "./configuration.ts";
import { createEventSignal } from "./event-signal.ts";
import { followChains } from "./follow-chains.ts";
import { createProgress, type Progress, type ProgressTerminal } from "./history/progress.ts";
import type { Indexer } from "./indexer.ts";
import { type IndexerLogger, silentLogger } from "./logger.ts";
import { createChainEvidence } from "./proof/chain-evidence.ts";
import { createIndexerQueries } from "./query/indexer-queries.ts";
import { healthOf, readIndexerStatus } from "./query/read-indexer-status.ts";
import { createToleranceOfLast } from "./rpc/tolerance.ts";
import type { BalanceDifference } from "./spot-check.ts";
import type { IndexerStatus } from "./status.ts";
import { holdLease } from "./store/hold-lease.ts";
import { createLazyStore } from "./store/open-store.ts";
import type { WriterLease } from "./store/writer-lease.ts";
import type { Repair } from "./verify/repair.ts";

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
  clock?: Clock | undefined;
  /** Chooses blocks to be proven: from 0 up to but not including 1. Default: `Math.random`. */
  random?: (() => number) | undefined;
  /** Transport of RPC requests. Default: `httpPost` of `@coinslot/chain`. */
  post?: HttpPost | undefined;
};

/** One chain of this process. */
interface ChainRuntime {
  chain: ChainConfiguration;
  pool: RpcPool;
  progress: Progress;
}

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
  const {
    logger = silentLogger,
    terminal,
    onRpcEvent,
    onBalanceDifference,
    onRepair = () => undefined,
    clock = systemClock,
    random = Math.random,
    post,
    ...input
  } = options;
  const configuration = readConfiguration(input);
  const lines = configuration.chains.map(
    (chain): ChainRuntime => ({
      chain,
      pool: createRpcPool({
        chainId: chain.chainId,
        rpcUrls: chain.rpcUrls,
        timeoutMs: chain.requestTimeoutMs,
        clock,
        ...(chain.callsPerSecond !== undefined && { callsPerSecond: chain.callsPerSecond }),
        ...(post !== undefined && { post }),
        onEvent: (event) => onRpcEvent?.({ ...event, chain: chain.name }),
      }),
      progress: createProgress({ chain: chain.name, logger, clock, terminal }),
    }),
  );
  const bell = createEventSignal();
  const pools = new Map(lines.map(({ chain, pool }) => [chain.name, pool]));
  const { opened, close } = createLazyStore({
    url: configuration.database,
    chains: configuration.chains,
    logger,
    onEvents: bell.ring,
  });
  const closing = new AbortController();
  let role: IndexerStatus["role"] = "standby";
  let following: Promise<void> | undefined;

  async function follow(lease: WriterLease, signal: AbortSignal): Promise<void> {
    const { database, tokens } = await opened();
    const contexts = lines.map((line) => ({
      ...line,
      tokens: tokens.filter(({ chainId }) => chainId === line.chain.chainId),
      database,
      lease,
      logger,
      clock,
      maxLogs: new Map<number, number>(),
      evidence: createChainEvidence(),
      rewrites: { count: 0 },
      random,
      onRepair,
      toleranceOf: createToleranceOfLast(),
    }));
    const onDifference = onBalanceDifference ?? (() => undefined);
    await followChains(contexts, { spotCheck: configuration.spotCheck, onDifference, signal });
  }

  const status = () => readIndexerStatus(opened, { chains: lines, role });

  return {
    chains: configuration.chains,
    async ready() {
      await opened();
    },
    async start() {
      const { database } = await opened();
      await Promise.all(lines.map(({ pool }) => refuseWrongChain(pool)));
      following ??= holdLease(
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
    ...createIndexerQueries({ opened, pools }),
    onEvents: bell.listen,
    status,
    readHealth: async () => healthOf(await status()),
    async database() {
      return (await opened()).database;
    },
    async close() {
      closing.abort(new Error("The indexer is closed"));
      // Pools first: a silent node would delay the close. A write under way is finished.
      for (const { pool } of lines) pool.close();
      await following?.catch(() => undefined);
      await close();
    },
  };
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
