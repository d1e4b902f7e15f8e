import { Router } from "express";
import { keepAnswer } from "./keep-answer.ts";

/** The answer of `/readyz`: 200 where `status` is `ready`, else 503. */
export interface Readiness {
  status: "ready" | "not ready" | "starting" | "stopping";
  /** Facts for the operator, beside the status. */
  [detail: string]: unknown;
}

/** Metrics in the text format of Prometheus. */
export interface MetricsPage {
  contentType: string;
  text: string;
}

/**
 * Probes for the operator: `/livez` (the process answers), `/readyz` and `/metrics`. They need no
 * key and precede all limits, so the metrics are read once a second at most. The same holds for
 * readiness where `readReadiness` uses `keepAnswer`.
 */
export function probeRouter(options: {
  readReadiness: () => Promise<Readiness>;
  readMetrics: () => Promise<MetricsPage>;
}): Router {
  const { readReadiness } = options;
  const readMetrics = keepAnswer(options.readMetrics);
  const router = Router();

  router.get("/livez", (_request, response) => {
    response.json({ status: "live" });
  });

  router.get("/readyz", async (_request, response) => {
    const readiness = await readReadiness();
    response.status(readiness.status === "ready" ? 200 : 503).json(readiness);
  });

  router.get("/metrics", async (_request, response) => {
    const { contentType, text } = await readMetrics();
    response.type(contentType).send(text);
  });

  return router;
}
