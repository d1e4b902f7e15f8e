import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { createChannelMetrics } from "./channel-metrics.ts";
import { createMoneyMetrics } from "./money-metrics.ts";

/** The metrics of a facilitator, in a registry of its own. */
export type SettlementMetrics = ReturnType<typeof createMetrics>;

const latencyBuckets = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

/** Creates the metrics of one facilitator. */
export function createMetrics() {
  const registry = new Registry();
  const registers = [registry];

  function latency(stage: string, help: string): (sinceMs: number) => void {
    const name = `coinslot_${stage}_seconds`;
    const histogram = new Histogram({ name, help, buckets: latencyBuckets, registers });
    return (sinceMs) => histogram.observe((performance.now() - sinceMs) / 1000);
  }

  return {
    registry,
    channels: createChannelMetrics(registry),
    // One histogram for each stage: labels would cost more than everything else about them.
    verifySeconds: latency("verify", "Time of a verification"),
    reserveSeconds: latency("reserve", "Time of a reservation"),
    settleSeconds: latency("settle", "Time from the queue to the outcome of a payment"),
    outcomes: new Counter({
      name: "coinslot_payments_total",
      help: "Payments by their outcome",
      labelNames: ["network", "outcome"] as const,
      registers,
    }),
    batchSize: new Histogram({
      name: "coinslot_batch_payments",
      help: "Payments in a transaction",
      labelNames: ["network"] as const,
      buckets: [1, 2, 5, 10, 20, 50, 100, 200],
      registers,
    }),
    transactions: new Counter({
      name: "coinslot_transactions_total",
      help: "Transactions: stored, replaced, settled, lost",
      labelNames: ["network", "event"] as const,
      registers,
    }),
    queueDepth: new Gauge({
      name: "coinslot_queue_payments",
      help: "Payments that wait for a transaction, at the last poll: shared, or alone for payers with code",
      labelNames: ["network", "lane"] as const,
      registers,
    }),
    inFlight: new Gauge({
      name: "coinslot_transactions_in_flight",
      help: "Transactions that no block holds yet",
      labelNames: ["network", "relayer"] as const,
      registers,
    }),
    relayerBalance: new Gauge({
      name: "coinslot_relayer_balance_wei",
      help: "Balance of a relayer for gas",
      labelNames: ["network", "relayer"] as const,
      registers,
    }),
    reorganised: new Counter({
      name: "coinslot_reorganised_payments_total",
      help: "Payments whose block left the chain; delivered is true where their answer was sent",
      labelNames: ["network", "delivered"] as const,
      registers,
    }),
    ...createLossMetrics(registers),
    nodeCalls: new Counter({
      name: "coinslot_node_calls_total",
      help: "JSON-RPC calls to nodes by method; each call of a batch counts, as providers bill them",
      labelNames: ["network", "method"] as const,
      registers,
    }),
    nodeRequests: new Counter({
      name: "coinslot_node_requests_total",
      help: "HTTP requests to nodes; a batch of calls is one",
      labelNames: ["network", "endpoint"] as const,
      registers,
    }),
    nodeFailures: new Counter({
      name: "coinslot_node_failures_total",
      help: "Requests to nodes that failed, by kind; rate-limited: the provider refused them",
      labelNames: ["network", "endpoint", "kind"] as const,
      registers,
    }),
    signerFailures: new Counter({
      name: "coinslot_signer_failures_total",
      help: "Signatures that a relayer's signer did not give: timeout, failed, wrong",
      labelNames: ["network", "relayer", "kind"] as const,
      registers,
    }),
    stops: new Gauge({
      name: "coinslot_stops",
      help: "Stop switches that are set: 1 for each network or route without new payments",
      labelNames: ["kind", "name"] as const,
      registers,
    }),
    refunds: new Counter({
      name: "coinslot_refunds_total",
      help: "Refunds that came into a state",
      labelNames: ["network", "state"] as const,
      registers,
    }),
    money: createMoneyMetrics(registry),
    ...createWebhookMetrics(registers),
    sendErrors: new Counter({
      name: "coinslot_send_errors_total",
      help: "Transactions refused by nodes, by kind",
      labelNames: ["network", "error"] as const,
      registers,
    }),
  };
}

/** The metrics of reorganisations deeper than final. */
function createLossMetrics(registers: Registry[]) {
  const labelNames = ["network", "delivered"] as const;
  return {
    deepReorganised: new Counter({
      name: "coinslot_deep_reorganised_payments_total",
      help: "Final payments whose block left the chain; delivered is true where their answer was sent",
      labelNames,
      registers,
    }),
    lost: new Counter({
      name: "coinslot_lost_payments_total",
      help: "Payments that were final, and have ended without their money",
      labelNames,
      registers,
    }),
  };
}

/** The metrics of its webhooks. */
function createWebhookMetrics(registers: Registry[]) {
  return {
    webhooks: new Counter({
      name: "coinslot_webhooks_total",
      help: "Attempts to deliver a webhook: delivered, failed and tried again, dead after the last",
      labelNames: ["endpoint", "outcome"] as const,
      registers,
    }),
    webhooksPending: new Gauge({
      name: "coinslot_webhooks_pending",
      help: "Events that wait for their delivery, counted up to 10,000",
      labelNames: ["endpoint"] as const,
      registers,
    }),
    webhooksDead: new Gauge({
      name: "coinslot_webhooks_dead",
      help: "Events whose every attempt has failed, counted up to 10,000",
      labelNames: ["endpoint"] as const,
      registers,
    }),
    webhooksOldest: new Gauge({
      name: "coinslot_webhooks_oldest_pending_seconds",
      help: "Age of the oldest event that waits for its delivery; 0 without one",
      labelNames: ["endpoint"] as const,
      registers,
    }),
  };
}
