import { RpcError } from "@coinslot/chain";
import {
  createIndexer,
  type Indexer,
  type IndexerConfigurationInput,
  type IndexerLogger,
  type ProgressTerminal,
} from "@coinslot/indexer";
import { isDatabaseError } from "@coinslot/storage";
import { createIndexerMetrics, type IndexerServiceMetrics } from "./service-metrics.ts";

/** An indexer, and its metrics. */
export interface MeteredIndexer {
  indexer: Indexer;
  metrics: IndexerServiceMetrics;
}

/**
 * Creates an indexer whose events are counted as metrics.
 *
 * @throws IndexerConfigurationError
 */
export function createMeteredIndexer(
  configuration: IndexerConfigurationInput,
  { logger, terminal }: { logger: IndexerLogger; terminal?: ProgressTerminal | undefined },
): MeteredIndexer {
  const metrics = createIndexerMetrics();
  const indexer = createIndexer({
    ...configuration,
    logger,
    terminal,
    onRpcEvent: metrics.countRpcEvent,
    onBalanceDifference: metrics.countBalanceDifference,
    onRepair: metrics.countRepair,
    onWebhook: metrics.countWebhook,
  });
  return { indexer, metrics };
}

/** Describes why an indexer did not start, and the setting of a service that mends it. */
export function describeIndexerFault(error: unknown): string {
  if (isDatabaseError(error, "older-schema"))
    return `${error.message} Update and restart the indexing service, or run the command of its release.`;
  if (isDatabaseError(error)) {
    return `${error.message.replace(/\.$/, "")}. Start or repair the database, or set INDEXER_DATABASE to another.`;
  }
  if (error instanceof RpcError) {
    return `${error.message}. Name endpoints of the chain that is meant (COINSLOT_RPC_URL_… or INDEXER_RPC_URLS_…, or rpcUrls in the file).`;
  }
  return error instanceof Error ? error.message : String(error);
}
