import { Gauge, type Registry } from "prom-client";
import type { LedgerHealth } from "./ledger-health.ts";

/** Registers the readiness of a facilitator, for alerts. A scrape waits for nothing. */
export function registerReadiness(
  registry: Registry,
  {
    health,
    ready,
  }: {
    health: Pick<LedgerHealth, "obstacle">;
    /** Resolves when the present engine takes payments. */
    ready: () => Promise<void>;
  },
): void {
  new Gauge({
    name: "coinslot_ready",
    help: "1 where new payments are taken, 0 while the facilitator starts, or cannot work",
    registers: [registry],
    async collect() {
      let isReady = false;
      void ready().then(
        () => {
          isReady = true;
        },
        () => undefined,
      );
      // A promise that is settled by now has called back before the next turn of the event loop.
      await new Promise((resolve) => setImmediate(resolve));
      this.set(isReady && health.obstacle() === undefined ? 1 : 0);
    },
  });
}
