import { facilitatorRouter } from "@coinslot/express";
import { type CoinslotFacilitator, createFacilitator, type HookContext } from "@coinslot/facilitator";
import { ListenError, startHttpServer } from "@coinslot/indexer";
import { type Address, ConfigurationError, isSameAddress } from "@coinslot/protocol";
import { isDatabaseError } from "@coinslot/storage";
import express, { type Express } from "express";
import helmet from "helmet";
import type { Logger } from "pino";
import { guardCallers, openCallerCounts } from "./guard-callers.ts";
import { inSettings } from "./network-options.ts";
import { probeRouter } from "./probes.ts";
import type { FacilitatorServiceConfiguration } from "./service-configuration.ts";
import { createServiceMetrics } from "./service-metrics.ts";

/** A hosted facilitator that runs. */
export interface FacilitatorService {
  /** Where it is, such as `http://127.0.0.1:4022`. */
  url: string;
  facilitator: CoinslotFacilitator;
  /** Takes no more requests, finishes those that run, and closes the ledger. Harmless when repeated. */
  stop(): Promise<void>;
}

const variables = { host: "FACILITATOR_HOST", port: "FACILITATOR_PORT" };

/**
 * Starts a facilitator, and serves `/verify`, `/settle`, `/supported`, probes and metrics.
 *
 * @throws ConfigurationError with all that stands in the way: the port, the ledger, the chains
 */
export async function startFacilitatorService(
  configuration: FacilitatorServiceConfiguration,
  { logger }: { logger: Logger },
): Promise<FacilitatorService> {
  const { host, port, trustProxy, keys, payTo, requestsPerMinute } = configuration;
  const { ledger } = configuration.facilitator;
  const facilitator = createFacilitator({ ...configuration.facilitator, logger });
  if (payTo !== undefined) {
    const refuseOthers = createRecipientRule(payTo);
    facilitator.onBeforeVerify(refuseOthers).onBeforeSettle(refuseOthers);
  }
  const metrics = createServiceMetrics();
  const ending = new AbortController();
  let isStarted = false;
  const app = express();
  app.use(
    probeRouter({
      facilitator,
      metrics,
      state: () => (ending.signal.aborted ? "stopping" : isStarted ? "started" : "starting"),
    }),
  );

  const onBackgroundError = (error: unknown) =>
    logger.warn({ err: error }, "a database connection broke; it is made again");
  const [listening, counting, ready] = await Promise.allSettled([
    startHttpServer(app, { host, port, variables }),
    openCallerCounts({ ledger, onBackgroundError }),
    facilitator.ready(),
  ]);

  async function stop(): Promise<void> {
    ending.abort();
    if (listening.status === "fulfilled") await listening.value.close();
    await facilitator.close();
    if (counting.status === "fulfilled") await counting.value.close();
  }
  let stopped: Promise<void> | undefined;
  const stopOnce = () => {
    stopped ??= stop();
    return stopped;
  };

  if (
    listening.status === "rejected" ||
    counting.status === "rejected" ||
    ready.status === "rejected"
  ) {
    await stopOnce();
    const faults = [listening, ready, counting].flatMap((each) =>
      each.status === "rejected" ? [each.reason] : [],
    );
    const problems = faults.flatMap((fault) => describeFault(fault, configuration));
    throw new ConfigurationError("The facilitator", [...new Set(problems)], {
      cause: new AggregateError(faults),
    });
  }

  app.disable("x-powered-by");
  app.set("trust proxy", trustProxy);
  app.use(
    helmet({
      contentSecurityPolicy: {
        useDefaults: false,
        directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
      },
    }),
  );
  app.use(metrics.countRequests);
  app.use(guardCallers({ keys, requestsPerMinute, store: counting.value.store }));
  app.use(
    facilitatorRouter(facilitator, {
      onError: (error) => logger.error({ err: error }, "a request could not be answered"),
      events: {
        secret: configuration.eventSecrets,
        unsafeAllowPrivateAddresses: configuration.unsafePrivateCallbacks,
        onOutcome: metrics.countEvent,
        signal: ending.signal,
      },
    }),
  );
  isStarted = true;
  return { url: listening.value.url, facilitator, stop: stopOnce };
}
