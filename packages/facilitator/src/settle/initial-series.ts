import { needsHelp } from "../ledger/refunds-schema.ts";
import type { SettlementMetrics } from "./metrics.ts";
import type { SignerErrorKind } from "./relay/relayer-signer.ts";

/** A network, as far as series of metrics name it. */
interface SeriesNetwork {
  network: string;
  rpcUrls: readonly unknown[];
  relayers: readonly { address: string }[];
  retiring: readonly { address: string }[];
}

const delivered = ["true", "false"] as const;
const signerKinds: readonly SignerErrorKind[] = ["timeout", "failed", "wrong"];

/**
 * Sets the series at 0 whose first event has to raise an alert. Prometheus' `increase()` compares
 * two samples: without one before it, it misses the first event of a counter.
 */
export function setInitialSeries(
  metrics: Pick<
    SettlementMetrics,
    | "reorganised"
    | "deepReorganised"
    | "lost"
    | "nodeFailures"
    | "signerFailures"
    | "refunds"
    | "outcomes"
    | "transactions"
    | "channels"
  >,
  networks: readonly SeriesNetwork[],
): void {
  for (const { network, rpcUrls, relayers, retiring } of networks) {
    for (const each of delivered) {
      const labels = { network, delivered: each };
      metrics.reorganised.inc(labels, 0);
      metrics.deepReorganised.inc(labels, 0);
      metrics.lost.inc(labels, 0);
    }
    for (const outcome of ["confirmed", "failed", "expired"]) {
      metrics.outcomes.inc({ network, outcome }, 0);
    }
    metrics.channels.lost.inc({ network }, 0);
    metrics.transactions.inc({ network, event: "stored" }, 0);
    for (const index of rpcUrls.keys()) {
      metrics.nodeFailures.inc({ network, endpoint: index + 1, kind: "rate-limited" }, 0);
    }
    for (const { address } of [...relayers, ...retiring]) {
      for (const kind of signerKinds) {
        metrics.signerFailures.inc({ network, relayer: address, kind }, 0);
      }
    }
    for (const state of needsHelp) metrics.refunds.inc({ network, state }, 0);
  }
}
