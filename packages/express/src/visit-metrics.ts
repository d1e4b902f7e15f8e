import type { VisitTally } from "@coinslot/protocol";
import { processVisits } from "./process-visits.ts";

/**
 * Offers and refusals of this process as metrics, in the text form of Prometheus: for a seller
 * whose facilitator keeps no counts, such as one over HTTP. They have the names, and the labels,
 * with which `facilitator.metrics` shows those of a facilitator in the process. A registry that has
 * these already must not be put before them.
 *
 * @example
 * ```ts
 * app.get("/metrics", (_request, response) => {
 *   response.type("text/plain; version=0.0.4").send(visitMetrics());
 * });
 * ```
 */
export function visitMetrics(): string {
  return writeVisitMetrics(processVisits.tallies());
}

/** Writes tallies as metrics. */
export function writeVisitMetrics(tallies: readonly VisitTally[]): string {
  const offers = tallies.filter(({ reason }) => reason === "offered");
  const refusals = tallies.filter(({ reason }) => reason !== "offered");
  return [
    "# HELP coinslot_offers_total Requests without a payment that got an offer, by route",
    "# TYPE coinslot_offers_total counter",
    ...offers.map(({ route, total }) => sample("coinslot_offers_total", { route }, total)),
    "# HELP coinslot_refusals_total Requests with a payment, or that could not be taken, which bought nothing, by reason",
    "# TYPE coinslot_refusals_total counter",
    ...refusals.map(({ route, reason, network, asset, total }) =>
      sample("coinslot_refusals_total", { route, reason, network, asset }, total),
    ),
    "",
  ].join("\n");
}

function sample(name: string, labels: Readonly<Record<string, string>>, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(text)}"`);
  return `${name}{${pairs.join(",")}} ${value}`;
}

/** As the text form has it: backslash, quote and line feed. */
function escapeLabel(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
