import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { RpcError } from "@coinslot/chain";
import { isDatabaseError } from "@coinslot/storage";
import express from "express";
import { openKeyStore } from "../api/api-stores.ts";
import { answerNotFound, createErrorHandler } from "../api/error-answer.ts";
import type { KeyStore } from "../api/keys/key-store.ts";
import { transferApi } from "../api/transfer-api.ts";
import { createIndexer } from "../create-indexer.ts";
import type { ProgressTerminal } from "../history/progress.ts";
import type { Indexer } from "../indexer.ts";
import type { IndexerLogger } from "../logger.ts";
import { probeRouter } from "./probes.ts";
import type { ServiceConfiguration } from "./service-configuration.ts";
import { createServiceMetrics } from "./service-metrics.ts";

/** The service could not start. `problems` says all that is wrong, and how to mend it, a sentence each. */
export class ServiceStartError extends Error {
  override readonly name = "ServiceStartError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[], options?: { cause?: unknown }) {
    super(
      `The indexing service could not start:\n${problems.map((each) => `- ${each}`).join("\n")}`,
      options,
    );
    this.problems = problems;
  }
}

/** A service that runs. */
export interface IndexerService {
  /** Where it is, such as `http://127.0.0.1:8080`. */
  url: string;
  indexer: Indexer;
  keys: KeyStore;
  /** Ends streams, takes no more requests, finishes those that run, and what is being written. Harmless when repeated. */
  stop(): Promise<void>;
}

const drainMs = 10_000;

/**
 * Follows the chains and serves the API, probes and metrics.
 *
 * @throws ServiceStartError if the port is taken, the database is away, or an endpoint serves another chain
 */
export async function startIndexerService(
  configuration: ServiceConfiguration,
  { logger, terminal }: { logger: IndexerLogger; terminal?: ProgressTerminal | undefined },
): Promise<IndexerService> {
  const { host, port, authStatus, trustProxy } = configuration;
  const metrics = createServiceMetrics();
  const indexer = createIndexer({
    ...configuration.indexer,
    logger,
    terminal,
    onRpcEvent: metrics.countRpcEvent,
    onBalanceDifference(difference) {
      metrics.countBalanceDifference(difference);
      logger.warn({ difference }, "A balance differs from what the chain says");
    },
  });

  const stopping = new AbortController();
  const { signal } = stopping;
  const app = express();
  app.disable("x-powered-by");
  app.set("trust proxy", trustProxy);
  app.use(probeRouter({ indexer, metrics, isStopping: () => signal.aborted }));
  app.use(transferApi(indexer, { authStatus, logger, signal, registry: metrics.registry }));
  app.use(answerNotFound);
  app.use(createErrorHandler(logger));
  const server = createServer(app);

  async function stop(): Promise<void> {
    stopping.abort();
    await closeServer(server);
    await indexer.close();
  }
  let stopped: Promise<void> | undefined;
  const stopOnce = () => {
    stopped ??= stop();
    return stopped;
  };

  const [listening, following] = await Promise.allSettled([
    listen(server, { host, port }),
    indexer.start(),
  ]);
  const problems = [
    ...(listening.status === "rejected"
      ? [describeListenFault(listening.reason, { host, port })]
      : []),
    ...(following.status === "rejected" ? [describeStartFault(following.reason)] : []),
  ];
  if (listening.status === "rejected" || following.status === "rejected") {
    await stopOnce();
    const faults = [listening, following].flatMap((each) =>
      each.status === "rejected" ? [each.reason] : [],
    );
    throw new ServiceStartError(problems, { cause: new AggregateError(faults) });
  }
  return {
    url: listening.value,
    indexer,
    keys: await openKeyStore(await indexer.database()),
    stop: stopOnce,
  };
}

function listen(server: Server, { host, port }: { host: string; port: number }): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      const address: AddressInfo | string | null = server.address();
      const actual = typeof address === "object" && address !== null ? address.port : port;
      resolve(`http://${host.includes(":") ? `[${host}]` : host}:${actual}`);
    });
  });
}

/** Waits for the answers that are under way, for a while. */
async function closeServer(server: Server): Promise<void> {
  if (!server.listening) return;
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const timer = new AbortController();
  const patience = sleep(drainMs, undefined, { signal: timer.signal }).then(
    () => server.closeAllConnections(),
    () => undefined,
  );
  await closed;
  timer.abort();
  await patience;
}

function describeListenFault(error: unknown, { host, port }: { host: string; port: number }) {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  switch (code) {
    case "EADDRINUSE":
      return `Port ${port} on ${host} is in use. Stop what uses it, or set INDEXER_PORT to another.`;
    case "EACCES":
      return `Port ${port} on ${host} may not be opened by this user. Set INDEXER_PORT to one above 1023.`;
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return `${host} is no address of this machine. Set INDEXER_HOST to one, or to 0.0.0.0 for all.`;
    default:
      return `Listening on ${host}:${port} failed: ${String(error)}`;
  }
}

function describeStartFault(error: unknown): string {
  if (isDatabaseError(error)) {
    return `${error.message}. Start or mend the database, or set INDEXER_DATABASE to another.`;
  }
  if (error instanceof RpcError) {
    return `${error.message}. Name endpoints of the chain that is meant (INDEXER_RPC_URLS_…, or rpcUrls in the file).`;
  }
  return error instanceof Error ? error.message : String(error);
}
