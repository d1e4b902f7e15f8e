import type { CoinslotFacilitator } from "@coinslot/facilitator";
import { keepAnswer, probeRouter, type Readiness } from "@coinslot/hosting";
import type { Router } from "express";
import type { Upstream } from "./upstream.ts";

/** Probes. Ready: the ledger and the API answer, and the service is not about to stop. */
export function probeRoutes(options: {
  facilitator: Pick<CoinslotFacilitator, "payments" | "metrics">;
  upstream: Pick<Upstream, "isReady" | "readMetrics">;
  isStopping: () => boolean;
}): Router {
  const { facilitator, upstream, isStopping } = options;

  const readState = keepAnswer(async (): Promise<Readiness["status"]> => {
    // Any query proves the ledger: it answers, or throws.
    const asked = await Promise.allSettled([
      facilitator.payments.list({ limit: 1 }),
      upstream.isReady(),
    ]);
    const [ledger, source] = asked;
    const isReady = ledger.status === "fulfilled" && source.status === "fulfilled" && source.value;
    return isReady ? "ready" : "not ready";
  });

  return probeRouter({
    readReadiness: async () => ({ status: isStopping() ? "stopping" : await readState() }),
    async readMetrics() {
      const { contentType } = facilitator.metrics;
      const pages = [await facilitator.metrics.metrics(), await upstream.readMetrics()];
      return { contentType, text: pages.join("\n") };
    },
  });
}
