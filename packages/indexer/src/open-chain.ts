import {
  type Clock,
  createRpcPool,
  type HttpPost,
  RpcNotReadyError,
  type RpcPool,
  type RpcPoolEvent,
} from "@coinslot/chain";
import type { ChainConfiguration } from "./configuration.ts";
import { createProgress, type Progress, type ProgressTerminal } from "./history/progress.ts";
import type { IndexerLogger } from "./logger.ts";
import { createTrustedPool, type TrustedPool } from "./trusted-pool.ts";

/** One chain of this process. */
export interface ChainRuntime {
  chain: ChainConfiguration;
  pool: RpcPool;
  /** The pool without the endpoints of `outvoted`, for every read of the chain. */
  trusted: TrustedPool;
  outvoted: Set<number>;
  progress: Progress;
}

/** Connects to a chain. Sends no request yet. */
export function openChain(
  chain: ChainConfiguration,
  options: {
    clock: Clock;
    logger: IndexerLogger;
    terminal: ProgressTerminal | undefined;
    onRpcEvent: ((event: RpcPoolEvent & { chain: string }) => void) | undefined;
    post: HttpPost | undefined;
  },
): ChainRuntime {
  const { clock, logger, terminal, onRpcEvent, post } = options;
  const pool = createRpcPool({
    chainId: chain.chainId,
    rpcUrls: chain.rpcUrls,
    timeoutMs: chain.requestTimeoutMs,
    clock,
    ...(chain.callsPerSecond !== undefined && { callsPerSecond: chain.callsPerSecond }),
    ...(post !== undefined && { post }),
    onEvent(event) {
      if (event.type === "endpoint-wrong-chain") {
        const { endpoint, chainId: found } = event;
        const facts = { chain: chain.name, endpoint, found, expected: chain.chainId };
        logger.error(facts, "An endpoint serves another chain, and is not used");
      }
      onRpcEvent?.({ ...event, chain: chain.name });
    },
  });
  const outvoted = new Set<number>();
  const trusted = createTrustedPool(pool, { chainId: chain.chainId, outvoted, clock });
  const progress = createProgress({ chain: chain.name, logger, clock, terminal });
  return { chain, pool, trusted, outvoted, progress };
}

/** Endpoints that are down may come back. Where all serve another chain, none is left. */
export async function checkChainId(pool: RpcPool): Promise<void> {
  try {
    await pool.ready();
  } catch (error) {
    if (error instanceof RpcNotReadyError && error.retryable) return;
    throw error;
  }
}
