import { createMeteredIndexer, describeIndexerFault } from "@coinslot/hosting";
import {
  createTransferService,
  type IndexerConfigurationInput,
  transferApi,
} from "@coinslot/indexer";
import { ConfigurationError } from "@coinslot/protocol";
import type { Logger } from "pino";
import type { Upstream } from "./upstream.ts";

/** The indexing API in this process: without keys and limits. Payment alone limits it. */
export function createEmbeddedUpstream(
  configuration: IndexerConfigurationInput,
  { logger }: { logger: Logger },
): Upstream {
  const { indexer, metrics } = createMeteredIndexer(configuration, { logger });
  const { registry } = metrics;
  return {
    handle: transferApi(indexer, { unsafeOpenAccess: true, logger, registry }),
    free: createTransferService(indexer),
    healthFreshMs: 1_000,

    async start() {
      try {
        await indexer.start();
      } catch (cause) {
        throw new ConfigurationError("The indexer", [describeIndexerFault(cause)], { cause });
      }
    },

    isReady: async () => (await indexer.status()).database === "healthy",
    readMetrics: async () => (await metrics.read(indexer)).text,
    close: () => indexer.close(),
  };
}
