import type { PaymentMiddleware, PaymentRoutes } from "@coinslot/express";
import { ApiError, answerNotFound, createErrorHandler } from "@coinslot/indexer";
import express, { type Express, type RequestHandler, type Router } from "express";
import type { Logger } from "pino";
import { freeRoutes } from "./free-routes.ts";
import type { Upstream } from "./upstream.ts";

/** The largest body of a batch that the API takes. */
const batchBytes = 65_536;

/** Puts an API behind a coin slot. A request meets the handlers in this order. */
export function createApp(options: {
  routes: PaymentRoutes;
  gate: PaymentMiddleware;
  /** `/openapi.json` and `/llms.txt`. */
  discovery: RequestHandler;
  upstream: Upstream;
  probes: Router;
  trustProxy: number;
  logger: Logger;
}): Express {
  const { routes, gate, discovery, upstream, probes, trustProxy, logger } = options;
  const app = express();
  app.disable("x-powered-by");
  app.set("trust proxy", trustProxy);
  app.use(probes);
  app.use(discovery);
  app.use(freeRoutes(upstream));
  app.use("/api", sellJson);
  // A batch is priced by its items, so it is read before its price.
  app.use("/api/v1/batch", express.json({ limit: batchBytes, strict: false, type: () => true }));
  app.use(gate);
  handSoldRequestsTo(app, routes, upstream.handle);
  app.use(answerNotFound);
  app.use(createErrorHandler(logger));
  return app;
}

/** The API has files and endless streams as well; a sold answer must fit into memory. */
const sellJson: RequestHandler = function sellJson(request, _response, next) {
  if (!request.accepts("application/json")) {
    throw new ApiError(406, "Answers are sold in JSON: accept application/json.");
  }
  request.headers.accept = "application/json";
  next();
};

/** Unsold requests never reach the API: it may have private operations, such as those on keys. */
function handSoldRequestsTo(app: Express, routes: PaymentRoutes, handle: RequestHandler): void {
  for (const key of Object.keys(routes)) {
    const [verb = "", path = ""] = key.split(" ");
    if (verb === "POST") app.post(path, handle);
    else app.get(path, handle);
  }
}
