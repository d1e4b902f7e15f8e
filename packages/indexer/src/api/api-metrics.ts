import type { Response } from "express";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** Counters of the API. */
export interface ApiMetrics {
  /**
   * Counts a request when its answer is done. `operation` is an id, never a path: the number of
   * paths is unbounded.
   */
  observe(operation: string, response: Response): void;
}

/** Registers the metrics of the API. */
export function createApiMetrics(registry: Registry): ApiMetrics {
  const registers = [registry];
  const requests = new Counter({
    name: "coinslot_indexer_api_requests_total",
    help: "Requests to the indexing API, by operation and HTTP status.",
    labelNames: ["operation", "status"],
    registers,
  });
  const seconds = new Histogram({
    name: "coinslot_indexer_api_request_seconds",
    help: "From a request to the end of its answer, in seconds, by operation.",
    labelNames: ["operation"],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
    registers,
  });
  const running = new Gauge({
    name: "coinslot_indexer_api_requests_running",
    help: "Requests that are being answered, open streams among them.",
    registers,
  });

  return {
    observe(operation, response) {
      const startedAt = performance.now();
      running.inc();
      response.once("close", () => {
        running.dec();
        requests.inc({ operation, status: response.statusCode });
        const type = String(response.getHeader("content-type"));
        // A stream lasts as long as its reader likes.
        if (!type.startsWith("text/event-stream")) {
          seconds.observe({ operation }, (performance.now() - startedAt) / 1_000);
        }
      });
    },
  };
}
