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
  /** Where a bar shows how far history is, if it is a terminal. Default: none, and lines in the log. */
  terminal?: ProgressTerminal | undefined;
  /** What the endpoints do, for logs and counters. */
  onRpcEvent?: ((event: RpcPoolEvent & { chain: string }) => void) | undefined;
  /** What the spot check found. */
  onBalanceDifference?: ((difference: BalanceDifference) => void) | undefined;
  /** What second readings found to be wrong, and mended. */
  onRepair?: ((repair: Repair) => void) | undefined;
  clock?: Clock | undefined;
  /** Chooses blocks to be proven: from 0 up to but not including 1. Default: `Math.random`. */
  random?: (() => number) | undefined;
  /** How RPC requests are sent. Default: `httpPost` of `@coinslot/chain`. */
  post?: HttpPost | undefined;
};

/** One chain of this process. */
interface ChainRuntime {
  chain: ChainConfiguration;
  pool: RpcPool;
  progress: Progress;
}

/** Makes an indexer. Throws an `IndexerConfigurationError` with all that is wrong with the options. */
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
      // First, lest a node that has fallen silent keep us waiting. What is being written is finished.
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
