import type { CoinslotFacilitator } from "@coinslot/facilitator";
import { keepAnswer } from "@coinslot/indexer";
import { Router } from "express";
import type { Upstream } from "./upstream.ts";

/** Probes: `/livez` (the process answers), `/readyz` (it can sell), `/metrics`. Answers are cached for a second. */
export function probeRoutes(options: {
  facilitator: Pick<CoinslotFacilitator, "payments" | "metrics">;
  upstream: Pick<Upstream, "isReady" | "readFigures">;
  isStopping: () => boolean;
}): Router {
  const { facilitator, upstream, isStopping } = options;
  const router = Router();

  const readState = keepAnswer(async (): Promise<"ready" | "not ready"> => {
    // The ledger is asked for anything at all; it answers, or throws.
    const asked = await Promise.allSettled([
      facilitator.payments.list({ limit: 1 }),
      upstream.isReady(),
    ]);
    const [ledger, source] = asked;
    const isReady = ledger.status === "fulfilled" && source.status === "fulfilled" && source.value;
    return isReady ? "ready" : "not ready";
  });
  const readFigures = keepAnswer(async () => [
    await facilitator.metrics.metrics(),
    await upstream.readFigures(),
  ]);

  router.get("/livez", (_request, response) => {
    response.json({ status: "live" });
  });

  router.get("/readyz", async (_request, response) => {
    const status = isStopping() ? "stopping" : await readState();
    response.status(status === "ready" ? 200 : 503).json({ status });
  });

  router.get("/metrics", async (_request, response) => {
    const figures = await readFigures();
    response.type(facilitator.metrics.contentType).send(figures.join("\n"));
  });

  return router;
}
