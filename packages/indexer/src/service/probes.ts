import { Router } from "express";
import type { Indexer } from "../indexer.ts";
import { keepAnswer } from "./keep-answer.ts";
import type { ServiceMetrics } from "./service-metrics.ts";

/**
 * For those who run the service, without a key: `/livez` (the process answers), `/readyz` (it can serve: the
 * database answers, not every chain is stopped, and it is not about to stop), `/metrics`. Answers are kept for a
 * second.
 */
export function probeRouter(options: {
  indexer: Pick<Indexer, "status">;
  metrics: Pick<ServiceMetrics, "registry" | "read">;
  isStopping: () => boolean;
}): Router {
  const { indexer, metrics, isStopping } = options;
  const router = Router();
  const readStatus = keepAnswer(() => indexer.status());
  const readMetrics = keepAnswer(() => metrics.read(indexer));

  router.get("/livez", (_request, response) => {
    response.json({ status: "live" });
  });

  router.get("/readyz", (_request, response, next) => {
    readStatus()
      .then(({ database, role, chains }) => {
        const stopped = chains.flatMap(({ name, state }) => (state === "stopped" ? name : []));
        // One chain of several that is not served says so itself; the others are.
        const canServe = database === "healthy" && stopped.length < chains.length;
        const isReady = canServe && !isStopping();
        const status = isReady ? "ready" : isStopping() ? "stopping" : "not ready";
        response.status(isReady ? 200 : 503).json({
          status,
          database,
          role,
          ...(stopped.length > 0 && { stopped }),
        });
      })
      .catch(next);
  });

  router.get("/metrics", (_request, response, next) => {
    readMetrics()
      .then((text) => response.type(metrics.registry.contentType).send(text))
      .catch(next);
  });

  return router;
}
