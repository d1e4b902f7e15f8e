import { facilitatorRouter } from "@coinslot/express";
import { type CoinslotFacilitator, createFacilitator } from "@coinslot/facilitator";
import { ConfigurationError } from "@coinslot/protocol";
import { isDatabaseError } from "@coinslot/storage";
import express, { type ErrorRequestHandler, type Express } from "express";
import helmet from "helmet";
import type { Logger } from "pino";
import { ListenError, startHttpServer } from "../http-server.ts";
import { keepAnswer } from "../keep-answer.ts";
import { probeRouter, type Readiness } from "../probes.ts";
import { callerOf, createCallerCounts, guardCallers } from "./guard-callers.ts";
import { inSettings } from "./network-options.ts";
import { createRecipientRule } from "./recipient-rule.ts";
import type { FacilitatorServiceConfiguration } from "./service-configuration.ts";
import { createFacilitatorMetrics } from "./service-metrics.ts";

/** A hosted facilitator that runs. */
export interface FacilitatorService {
  /** Its URL, such as `http://127.0.0.1:4022`. */
  url: string;
  facilitator: CoinslotFacilitator;
  /** Takes no more requests, finishes those that run, and closes the ledger. Idempotent. */
  stop(): Promise<void>;
}

type State = "starting" | "started" | "stopping";

const variables = { host: "FACILITATOR_HOST", port: "FACILITATOR_PORT" };

/**
 * Starts a facilitator, and serves `/verify`, `/settle`, `/supported`, probes and metrics.
 *
 * @throws ConfigurationError with all obstacles: the port, the ledger, the chains
 */
export async function startFacilitatorService(
  configuration: FacilitatorServiceConfiguration,
  { logger }: { logger: Logger },
): Promise<FacilitatorService> {
  const { host, port, payTo } = configuration;
  const facilitator = createFacilitator({ ...configuration.facilitator, logger });
  if (payTo !== undefined) {
    const refuseOthers = createRecipientRule(payTo);
    facilitator.onBeforeVerify(refuseOthers).onBeforeSettle(refuseOthers);
  }
  const counts = createCallerCounts({
    ledger: configuration.facilitator.ledger,
    onBackgroundError: (err) => logger.warn({ err }, "a request could not be counted"),
  });
  const endOfEvents = new AbortController();
  let state: State = "starting";
  const app = createApp(configuration, {
    facilitator,
    store: counts.store,
    logger,
    signal: endOfEvents.signal,
    state: () => state,
  });

  const [listening, ...others] = await Promise.allSettled([
    startHttpServer(app, { host, port, variables }),
    facilitator.ready(),
    counts.ready(),
  ]);

  async function stop(): Promise<void> {
    state = "stopping";
    if (listening.status === "fulfilled") await listening.value.close();
    // Not before: requests that end meanwhile have events, too.
    endOfEvents.abort();
    const ends = await Promise.allSettled([facilitator.close(), counts.close()]);
    for (const end of ends) {
      // An unreachable ledger does not keep the process alive: the next start resumes from it.
      if (end.status === "rejected")
        logger.warn({ err: end.reason }, "the ledger was left as it is");
    }
  }
  let stopped: Promise<void> | undefined;
  const stopOnce = () => {
    stopped ??= stop();
    return stopped;
  };

  const faults = [listening, ...others].flatMap((each) =>
    each.status === "rejected" ? [each.reason] : [],
  );
  if (listening.status === "rejected" || faults.length > 0) {
    await stopOnce();
    const problems = faults.flatMap((fault) => describeFault(fault, configuration));
    throw new ConfigurationError("The facilitator", [...new Set(problems)], {
      cause: new AggregateError(faults),
    });
  }
  state = "started";
  if (configuration.keys === undefined && payTo === undefined) {
    logger.warn({}, openToAll);
  }
  return { url: listening.value.url, facilitator, stop: stopOnce };
}

const openToAll =
  "Every caller can make this facilitator pay gas for payments to any recipient: set FACILITATOR_KEYS or FACILITATOR_PAY_TO";

/** The middleware chain of a request. */
function createApp(
  configuration: FacilitatorServiceConfiguration,
  parts: {
    facilitator: CoinslotFacilitator;
    store: Parameters<typeof guardCallers>[0]["store"];
    logger: Logger;
    signal: AbortSignal;
    state: () => State;
  },
): Express {
  const { keys, requestsPerMinute, eventSecrets, unsafePrivateCallbacks } = configuration;
  const { maxPaidRequests } = configuration;
  const { facilitator, store, logger, signal, state } = parts;
  const metrics = createFacilitatorMetrics();
  const answerFault: ErrorRequestHandler = function answerFault(err, _request, response, _next) {
    logger.error({ err }, "a request could not be counted");
    const message = "Not possible at the moment";
    response.status(503).set("Retry-After", "2").json({ error: "unavailable", message });
  };

  const app = express();
  app.disable("x-powered-by");
  app.set("trust proxy", configuration.trustProxy);
  app.use(helmet({ contentSecurityPolicy: { useDefaults: false, directives: showNothing } }));
  app.use(
    probeRouter({
      readReadiness: createReadiness(facilitator, state),
      readMetrics: () => metrics.read(facilitator.metrics),
    }),
  );
  app.use(metrics.countRequests);
  app.use(guardCallers({ keys, requestsPerMinute, store }));
  app.use(
    facilitatorRouter(facilitator, {
      maxPaidRequests,
      onError: (err) => logger.error({ err }, "a request could not be answered"),
      clientKey: (request) => keys && callerOf(request, keys),
      caller: (request) => keys && callerOf(request, keys),
      events: {
        secret: eventSecrets,
        unsafeAllowPrivateAddresses: unsafePrivateCallbacks,
        onOutcome: metrics.countEvent,
        signal,
      },
    }),
  );
  app.use(answerFault);
  return app;
}

/**
 * Ready: chains and ledger were checked at the start, and the service is not about to stop. The
 * ledger answers, and can be written. It is read once a second at most.
 */
function createReadiness(
  facilitator: Pick<CoinslotFacilitator, "payments" | "obstacles" | "stops" | "signerFaults">,
  state: () => State,
): () => Promise<Readiness> {
  const readLedger = keepAnswer(async (): Promise<Readiness> => {
    try {
      // Any query will do: the ledger answers, or throws.
      await facilitator.payments.list({ limit: 1 });
    } catch {
      return { status: "not ready", ...obstacles() };
    }
    return facilitator.obstacles().length === 0
      ? { status: "ready" }
      : { status: "not ready", ...obstacles() };
  });

  function obstacles(): { ledger?: readonly string[] } {
    const ledger = facilitator.obstacles();
    return ledger.length === 0 ? {} : { ledger };
  }

  return async function readReadiness() {
    const now = state();
    const readiness: Readiness = now === "started" ? await readLedger() : { status: now };
    // Still ready: payments under way go on, and a stopped one gets its reason.
    const stopped = facilitator.stops.list();
    const signers = facilitator.signerFaults();
    return {
      ...readiness,
      ...(stopped.length === 0 ? {} : { stops: stopped }),
      ...(signers.length === 0 ? {} : { signers }),
    };
  };
}

/** Answers are data: a browser that shows one is to load nothing for it. */
const showNothing = { defaultSrc: ["'none'"], frameAncestors: ["'none'"] };

function describeFault(
  fault: unknown,
  { facilitator }: FacilitatorServiceConfiguration,
): readonly string[] {
  if (fault instanceof ConfigurationError) {
    return fault.problems.map((problem) => inSettings(problem, facilitator));
  }
  if (isDatabaseError(fault)) {
    return [inSettings(`The ledger cannot be used: ${fault.message}`, facilitator)];
  }
  if (fault instanceof ListenError) return [fault.message];
  return [fault instanceof Error ? fault.message : String(fault)];
}
