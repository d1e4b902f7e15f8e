import type { RpcPoolEvent } from "@coinslot/chain";
import {
  type BalanceDifference,
  type DeliveredWebhook,
  type Health,
  type Indexer,
  type IndexerWebhooks,
  indexerWebhooks,
  type Repair,
} from "@coinslot/indexer";
import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { MetricsPage } from "../probes.ts";

/** Metrics of the service, in the text format of Prometheus. */
export interface IndexerServiceMetrics {
  registry: Registry;
  countRpcEvent(event: RpcPoolEvent & { chain: string }): void;
  countBalanceDifference(difference: BalanceDifference): void;
  countRepair(repair: Repair): void;
  countWebhook(webhook: DeliveredWebhook): void;
  /** All metrics, with the current state of the chains. */
  read(indexer: Pick<Indexer, "status" | "database">): Promise<MetricsPage>;
}

const healthValues: Readonly<Record<Health, number>> = { healthy: 2, degraded: 1, unhealthy: 0 };

export function createIndexerMetrics(): IndexerServiceMetrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const rpcEvents = new Counter({
    name: "coinslot_indexer_rpc_events_total",
    help: "Events of RPC endpoints, by chain and kind.",
    labelNames: ["chain", "kind"],
    registers,
  });
  const differences = new Counter({
    name: "coinslot_indexer_balance_differences_total",
    help: "Balances that differ from the chain's, found by the spot check.",
    registers,
  });
  const repairs = new Counter({
    name: "coinslot_indexer_repaired_blocks_total",
    help: "Wrongly stored blocks, found by a second reading and repaired.",
    labelNames: ["chain"],
    registers,
  });
  const webhooks = new Counter({
    name: "coinslot_indexer_webhooks_total",
    help: "Attempts to deliver a webhook by outcome: delivered, failed and tried again, dead.",
    labelNames: ["endpoint", "outcome"],
    registers,
  });
  const gauge = (name: string, help: string, labelNames: readonly string[]) =>
    new Gauge({ name: `coinslot_indexer_${name}`, help, labelNames: [...labelNames], registers });
  const health = gauge("health", "2 healthy, 1 degraded, 0 unhealthy.", []);
  const writer = gauge("is_writer", "1 where this process follows the chains.", []);
  const chainHealth = gauge("chain_health", "2 healthy, 1 degraded, 0 unhealthy.", ["chain"]);
  const head = gauge("head_block", "The newest block that an endpoint reported.", ["chain"]);
  const final = gauge("finalized_block", "The last block that cannot be replaced.", ["chain"]);
  const lag = gauge("lag_blocks", "Blocks from the slowest token to the head.", ["chain"]);
  const doubted = gauge(
    "doubted_from_block",
    "The lowest final block that was replaced on the chain; -1: none.",
    ["chain"],
  );
  const latency = gauge("rpc_latency_ms", "Of the fastest endpoint.", ["chain"]);
  const indexed = gauge("indexed_block", "The last block that is indexed without a gap.", [
    "chain",
    "token",
  ]);
  const verified = gauge("verified_block", "The last block that was read twice, or proven.", [
    "chain",
    "token",
  ]);

  const ofWebhooks = {
    pending: gauge("webhooks_pending", "Events that wait, counted up to 10,000.", ["endpoint"]),
    dead: gauge("webhooks_dead", "Events whose every attempt has failed, up to 10,000.", [
      "endpoint",
    ]),
    oldest: gauge("webhooks_oldest_pending_seconds", "Age of the oldest event that waits.", [
      "endpoint",
    ]),
    watched: gauge("webhooks_watched_addresses", "Addresses that a receiver hears about.", [
      "endpoint",
    ]),
  };

  /** Opened once: its first call looks for migrations. */
  let opened: IndexerWebhooks | undefined;

  async function measureWebhooks(indexer: Pick<Indexer, "database">): Promise<void> {
    opened ??= indexerWebhooks(await indexer.database());
    for (const each of await opened.list()) {
      const labels = { endpoint: each.id };
      ofWebhooks.pending.set(labels, each.pending);
      ofWebhooks.dead.set(labels, each.dead);
      ofWebhooks.oldest.set(labels, (each.oldestPendingMs ?? 0) / 1_000);
      ofWebhooks.watched.set(labels, each.watched);
    }
  }

  return {
    registry,
    countRpcEvent: ({ chain, type }) => rpcEvents.inc({ chain, kind: type }),
    countBalanceDifference: () => differences.inc(),
    countRepair: ({ chain }) => repairs.inc({ chain }),
    countWebhook: ({ endpoint, outcome }) => webhooks.inc({ endpoint, outcome }),
    async read(indexer) {
      const { health: whole, role, chains, database } = await indexer.status();
      // A database that is away takes no other metric with it.
      if (database === "healthy") await measureWebhooks(indexer).catch(() => undefined);
      health.set(healthValues[whole]);
      writer.set(role === "writer" ? 1 : 0);
      for (const chain of chains) {
        const labels = { chain: chain.name };
        chainHealth.set(labels, healthValues[chain.health]);
        // Without a sample of 0 before it, `increase()` misses the first repair.
        repairs.inc(labels, 0);
        setIfKnown(head, labels, chain.head);
        setIfKnown(final, labels, chain.finalized);
        // A lag of before would hide that the writer records no head.
        if (chain.lagBlocks === undefined) lag.remove(labels);
        else lag.set(labels, chain.lagBlocks);
        setIfKnown(latency, labels, chain.rpcLatencyMs);
        doubted.set(labels, chain.doubtedFrom ?? -1);
        for (const { name, indexedTo, verifiedTo } of chain.tokens) {
          setIfKnown(verified, { ...labels, token: name }, verifiedTo);
          setIfKnown(indexed, { ...labels, token: name }, indexedTo);
        }
      }
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

function setIfKnown(gauge: Gauge, labels: Record<string, string>, value: number | undefined): void {
  if (value !== undefined) gauge.set(labels, value);
}
