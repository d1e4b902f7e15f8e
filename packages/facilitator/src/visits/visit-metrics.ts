import type { VisitBoard } from "@coinslot/protocol";
import { Counter, type Registry } from "prom-client";

/** Metrics of visits. They are filled at a scrape: a label would cost more than the count. */
export function registerVisitMetrics(registry: Registry, board: VisitBoard): void {
  const registers = [registry];
  new Counter({
    name: "coinslot_offers_total",
    help: "Requests without a payment that got an offer, by route",
    labelNames: ["route"] as const,
    registers,
    collect() {
      this.reset();
      for (const { route, reason, total } of board.tallies()) {
        if (reason === "offered") this.inc({ route }, total);
      }
    },
  });
  new Counter({
    name: "coinslot_refusals_total",
    help: "Requests with a payment, or that could not be taken, which bought nothing, by reason",
    labelNames: ["route", "reason", "network", "asset"] as const,
    registers,
    collect() {
      this.reset();
      for (const { route, reason, network, asset, total } of board.tallies()) {
        if (reason !== "offered") this.inc({ route, reason, network, asset }, total);
      }
    },
  });
}
