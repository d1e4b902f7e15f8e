import type { CoinslotFacilitator } from "@coinslot/facilitator";
import { keepAnswer } from "@coinslot/indexer";
import { Router } from "express";
import type { FacilitatorServiceMetrics } from "./service-metrics.ts";

/**
 * For those who run the service, without a key: `/livez` (the process answers), `/readyz` (chains and ledger were
 * found well, the ledger answers, and it is not about to stop), `/metrics`. They stand before all limits, so their
 * answers are kept for a second.
 */
export function probeRouter(options: {
  facilitator: Pick<CoinslotFacilitator, "payments" | "metrics">;
  metrics: Pick<FacilitatorServiceMetrics, "read">;
  state: () => "starting" | "started" | "stopping";
}): Router {
  const { facilitator, metrics, state } = options;
  const router = Router();

  const readLedger = keepAnswer(async () => {
    try {
      // Anything at all: it answers, or throws.
      await facilitator.payments.list({ limit: 1 });
      return "ready";
    } catch {
      return "not ready";
    }
  });
  const readMetrics = keepAnswer(() => metrics.read(facilitator.metrics));

  router.get("/livez", (_request, response) => {
    response.json({ status: "live" });
  });

  router.get("/readyz", async (_request, response) => {
    const status = state() === "started" ? await readLedger() : state();
    response.status(status === "ready" ? 200 : 503).json({ status });
  });

  router.get("/metrics", async (_request, response) => {
    const { contentType, text } = await readMetrics();
    response.type(contentType).send(text);
  });

  return router;
}
