import { paymentMiddleware } from "@coinslot/express";
import { createFacilitator } from "@coinslot/facilitator";
import { startHttpServer } from "@coinslot/hosting";
import { paywall } from "@coinslot/paywall";
import { ConfigurationError } from "@coinslot/protocol";
import type { Logger } from "pino";
import { createApp } from "./create-app.ts";
import { createEmbeddedUpstream } from "./embedded-upstream.ts";
import { inOurWords } from "./facilitator-problems.ts";
import { probeRoutes } from "./probe-routes.ts";
import type { PaidIndexerConfiguration } from "./read-configuration.ts";
import { createRemoteUpstream } from "./remote-upstream.ts";
import { maxAnswerBytes, soldRoutes } from "./sold-routes.ts";

/** A running seller. */
export interface PaidIndexer {
  /** URL of the service, such as `http://127.0.0.1:4021`. */
  url: string;
  /** Finishes accepted and paid requests, then ends. Idempotent. */
  stop(): Promise<void>;
}

const variables = { host: "PAID_INDEXER_HOST", port: "PAID_INDEXER_PORT" };

/**
 * Sells the indexing API.
 *
 * @throws ConfigurationError with all obstacles: the port, the databases, the chains, the remote
 * API
 */
export async function startPaidIndexer(
  configuration: PaidIndexerConfiguration,
  { logger }: { logger: Logger },
): Promise<PaidIndexer> {
  const { host, port, trustProxy, publicUrl, terms } = configuration;
  const upstream =
    "remote" in configuration.upstream
      ? createRemoteUpstream(configuration.upstream.remote)
      : createEmbeddedUpstream(configuration.upstream.embedded, { logger });
  const facilitator = createFacilitator({ ...configuration.facilitator, logger });
  facilitator.onAfterSettle(({ result: { success, payer, transaction, errorReason } }) => {
    logger.info({ payer, transaction, errorReason }, success ? "Sold" : "Not sold");
  });
  const routes = soldRoutes(terms);
  const gate = paymentMiddleware(routes, facilitator, {
    publicUrl,
    paywall: paywall({ name: "Paid indexer" }),
    maxResponseBytes: maxAnswerBytes,
    onError(error) {
      // The start reports its own obstacles, below.
      if (error instanceof ConfigurationError) return;
      logger.error({ error }, "A request could not be sold");
    },
  });
  let isStopping = false;
  const probes = probeRoutes({ facilitator, upstream, isStopping: () => isStopping });
  const discovery = paymentMiddleware.discovery(gate, {
    title: "Paid indexer",
    description: "Token transfers and balances of addresses, sold by the request.",
    categories: ["data", "blockchain"],
  });
  const app = createApp({ routes, gate, discovery, upstream, probes, trustProxy, logger });

  const [listening, paying, supplying] = await Promise.allSettled([
    startHttpServer(app, { host, port, variables }),
    facilitator.ready(),
    upstream.start(),
  ]);

  async function stop(): Promise<void> {
    isStopping = true;
    if (listening.status === "fulfilled") await listening.value.close();
    const ends = await Promise.allSettled([upstream.close(), facilitator.close()]);
    for (const end of ends) {
      // An unreachable database must not keep the process alive: the next start resumes from the
      // stored state.
      if (end.status === "rejected") {
        logger.warn({ error: end.reason }, "A database was left as it is");
      }
    }
  }
  let stopped: Promise<void> | undefined;
  const stopOnce = () => {
    stopped ??= stop();
    return stopped;
  };

  const problems = [
    ...problemsOf(listening),
    ...problemsOf(paying).map(inOurWords),
    ...problemsOf(supplying),
  ];
  if (listening.status === "rejected" || problems.length > 0) {
    await stopOnce();
    throw new ConfigurationError("The paid indexer", problems);
  }
  await gate.ready();
  return { url: listening.value.url, stop: stopOnce };
}

function problemsOf(result: PromiseSettledResult<unknown>): readonly string[] {
  if (result.status === "fulfilled") return [];
  const fault: unknown = result.reason;
  if (fault instanceof ConfigurationError) return fault.problems;
  return [fault instanceof Error ? fault.message : String(fault)];
}
