import {
  answerNotFound,
  createErrorHandler,
  type Indexer,
  type IndexerLogger,
  type KeyStore,
  openKeyStore,
  type ProgressTerminal,
  transferApi,
} from "@coinslot/indexer";
import express from "express";
import { ListenError, startHttpServer } from "../http-server.ts";
import { keepAnswer } from "../keep-answer.ts";
import { probeRouter, type Readiness } from "../probes.ts";
import { createMeteredIndexer, describeIndexerFault } from "./metered-indexer.ts";
import type { IndexerServiceConfiguration } from "./service-configuration.ts";
import { ServiceStartError } from "./service-start-error.ts";

/** A service that runs. */
export interface IndexerService {
  /** Its URL, such as `http://127.0.0.1:8080`. */
  url: string;
  indexer: Indexer;
  keys: KeyStore;
  /**
   * Ends streams, takes no more requests, and finishes those that run and pending writes.
   * Idempotent.
   */
  stop(): Promise<void>;
}

/**
 * Follows the chains and serves the API, probes and metrics.
 *
 * @throws ServiceStartError if the port is taken, the database is unreachable, or an endpoint
 *   serves another chain
 */
export async function startIndexerService(
  configuration: IndexerServiceConfiguration,
  { logger, terminal }: { logger: IndexerLogger; terminal?: ProgressTerminal | undefined },
): Promise<IndexerService> {
  const { host, port, authStatus, trustProxy } = configuration;
  const { indexer, metrics } = createMeteredIndexer(configuration.indexer, { logger, terminal });

  const stopping = new AbortController();
  const { signal } = stopping;
  const app = express();
  app.disable("x-powered-by");
  app.set("trust proxy", trustProxy);
  app.use(
    probeRouter({
      readReadiness: createReadiness(indexer, signal),
      readMetrics: () => metrics.read(indexer),
    }),
  );
  app.use(transferApi(indexer, { authStatus, logger, signal, registry: metrics.registry }));
  app.use(answerNotFound);
  app.use(createErrorHandler(logger));

  const [listening, following] = await Promise.allSettled([
    startHttpServer(app, { host, port, variables: { host: "INDEXER_HOST", port: "INDEXER_PORT" } }),
    indexer.start(),
  ]);

  async function stop(): Promise<void> {
    stopping.abort();
    if (listening.status === "fulfilled") await listening.value.close();
    await indexer.close();
  }
  let stopped: Promise<void> | undefined;
  const stopOnce = () => {
    stopped ??= stop();
    return stopped;
  };

  if (listening.status === "rejected" || following.status === "rejected") {
    await stopOnce();
    const faults = [listening, following].flatMap((each) =>
      each.status === "rejected" ? [each.reason] : [],
    );
    throw new ServiceStartError(
      faults.map((fault) =>
        fault instanceof ListenError ? fault.message : describeIndexerFault(fault),
      ),
      { cause: new AggregateError(faults) },
    );
  }
  return {
    url: listening.value.url,
    indexer,
    keys: await openKeyStore(await indexer.database()),
    stop: stopOnce,
  };
}

/**
 * Ready: the database answers, not every chain is stopped, and the service is not about to stop.
 * The state is read once a second at most.
 */
function createReadiness(
  indexer: Pick<Indexer, "status">,
  stopping: AbortSignal,
): () => Promise<Readiness> {
  const readStatus = keepAnswer(() => indexer.status());
  return async function readReadiness() {
    const { database, role, chains } = await readStatus();
    const stopped = chains.flatMap(({ name, state }) => (state === "stopped" ? name : []));
    // A chain that is not served reports itself, while the others are served.
    const canServe = database === "healthy" && stopped.length < chains.length;
    const status = stopping.aborted ? "stopping" : canServe ? "ready" : "not ready";
    return { status, database, role, ...(stopped.length > 0 && { stopped }) };
  };
}
