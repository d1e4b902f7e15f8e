import type { Address, Network } from "@coinslot/protocol";
import { Counter, Gauge, type Registry } from "prom-client";

/** Metrics of payment channels. */
export type ChannelMetrics = ReturnType<typeof createChannelMetrics>;

/** Adds the metrics of payment channels to a registry. Amounts are in the token's smallest unit. */
export function createChannelMetrics(registry: Registry) {
  const registers = [registry];
  const labelNames = ["network"] as const;
  return {
    charged: byRoute(registry, {
      name: "coinslot_channels_charged_units_total",
      help: "Charged on channels, in the token's smallest unit, by route",
    }),
    lowered: byRoute(registry, {
      name: "coinslot_channels_lowered_units_total",
      help: "The part of it that was taken back, since the handler charged less or failed",
    }),
    unclaimed: new Gauge({
      name: "coinslot_channels_unclaimed",
      help: "Charged on channels and not claimed yet, in the token's smallest unit",
      labelNames,
      registers,
    }),
    atRisk: new Gauge({
      name: "coinslot_channels_at_risk",
      help: "Unclaimed money that payers withdraw from channels, in the token's smallest unit",
      labelNames,
      registers,
    }),
    locked: new Gauge({
      name: "coinslot_channels_locked",
      help: "Money of buyers in channels, not claimed, in the token's smallest unit",
      labelNames,
      registers,
    }),
    lost: new Counter({
      name: "coinslot_channels_lost_total",
      help: "Charged on channels and no longer to be claimed, in the token's smallest unit",
      labelNames,
      registers,
    }),
    claims: new Counter({
      name: "coinslot_channel_claims_total",
      help: "Rows of claims by their outcome: sent, done, failed, refused",
      labelNames: ["network", "outcome"] as const,
      registers,
    }),
    deposits: new Counter({
      name: "coinslot_channel_deposits_total",
      help: "Deposits of payloads by their outcome: sent, done, failed",
      labelNames: ["network", "outcome"] as const,
      registers,
    }),
    refunds: new Counter({
      name: "coinslot_channel_refunds_total",
      help: "Refunds of channels by their outcome: sent, done, failed",
      labelNames: ["network", "outcome"] as const,
      registers,
    }),
    callerCalls: new Counter({
      name: "coinslot_caller_calls_total",
      help: "Calls of the escrow that callers asked for, by kind and outcome: sent, done, failed, refused",
      labelNames: ["network", "kind", "outcome"] as const,
      registers,
    }),
    oldestSeconds: new Gauge({
      name: "coinslot_channels_oldest_unclaimed_seconds",
      help: "Age of the oldest unclaimed charge of a channel",
      labelNames,
      registers,
    }),
    deadlineSeconds: new Gauge({
      name: "coinslot_channels_deadline_seconds",
      help: "Time until a payer may take unclaimed money away; infinite while none withdraws",
      labelNames,
      registers,
    }),
    deadlineRatio: new Gauge({
      name: "coinslot_channels_deadline_ratio",
      help: "The same time as a share of the channel's withdrawDelay; infinite while none withdraws",
      labelNames,
      registers,
    }),
    refused: new Gauge({
      name: "coinslot_channels_refused",
      help: "Channels with unclaimed money that cannot be claimed at the moment",
      labelNames,
      registers,
    }),
    watchedAt: new Gauge({
      name: "coinslot_channels_watched_timestamp_seconds",
      help: "Time of the block up to which the events of channels are known",
      labelNames,
      registers,
    }),
    watchedBlock: new Gauge({
      name: "coinslot_channels_watched_block",
      help: "Block up to which the events of channels are known",
      labelNames,
      registers,
    }),
  };
}

/** A token that a route is paid with. */
export interface ChargedSale {
  network: Network;
  asset: Address;
  route: string;
}

/** Bound of the sums of one metric. */
const maxSums = 2_000;

/**
 * A counter whose sums are whole numbers in memory, until a scrape: a label costs a request more.
 */
function byRoute(
  registry: Registry,
  { name, help }: { name: string; help: string },
): (sale: ChargedSale, amount: bigint) => void {
  const sums = new Map<string, ChargedSale & { amount: bigint }>();
  new Counter({
    name,
    help,
    labelNames: ["network", "asset", "route"] as const,
    registers: [registry],
    collect() {
      this.reset();
      for (const { amount, ...labels } of sums.values()) this.inc(labels, Number(amount));
    },
  });
  return ({ network, asset, route }, amount) => {
    const key = `${network} ${asset} ${route}`;
    const sum = sums.get(key);
    if (sum !== undefined) sum.amount += amount;
    else if (sums.size < maxSums) sums.set(key, { network, asset, route, amount });
  };
}
