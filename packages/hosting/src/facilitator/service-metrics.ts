import { type EventOutcome, readLoad } from "@coinslot/express";
import type { RequestHandler } from "express";
import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { MetricsPage } from "../probes.ts";
import { endpointOf } from "./guard-callers.ts";

/** Metrics of the service, beside those of the facilitator. */
export interface FacilitatorServiceMetrics {
  countRequests: RequestHandler;
  countEvent(outcome: EventOutcome): void;
  /** All metrics, with those of the facilitator, in the text format of Prometheus. */
  read(facilitator: Registry): Promise<MetricsPage>;
}

/** Creates the metrics of one service. */
export function createFacilitatorMetrics(): FacilitatorServiceMetrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const requests = new Counter({
    name: "coinslot_facilitator_requests_total",
    help: "Requests by endpoint and status; 401 had no key, 429 were too many.",
    labelNames: ["endpoint", "status"],
    registers,
  });
  const events = new Counter({
    name: "coinslot_facilitator_events_total",
    help: "Lifecycle events: delivered, refused by the receiver, failed, dropped.",
    labelNames: ["outcome"],
    registers,
  });

  new Gauge({
    name: "coinslot_paid_requests",
    help: "Paid requests that the process works on",
    registers,
    collect() {
      this.set(readLoad().places);
    },
  });
  new Counter({
    name: "coinslot_overload_refusals_total",
    help: "Paid requests refused because the process works on as many as it may",
    registers,
    collect() {
      this.reset();
      this.inc(readLoad().refusals);
    },
  });

  return {
    countRequests(request, response, next) {
      const endpoint = endpointOf(request);
      response.once("finish", () => requests.inc({ endpoint, status: response.statusCode }));
      next();
    },
    countEvent: (outcome) => events.inc({ outcome }),
    async read(facilitator) {
      const figures = await Promise.all([registry.metrics(), facilitator.metrics()]);
      return { contentType: registry.contentType, text: figures.join("\n") };
    },
  };
}
