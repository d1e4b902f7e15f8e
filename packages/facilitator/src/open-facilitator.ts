import { readFacilitatorOptions } from "./configuration/facilitator-configuration.ts";
import type { FacilitatorOptions } from "./configuration/facilitator-options.ts";
import {
  readSettlementOptions,
  type SettlementOptions,
} from "./configuration/settlement-options.ts";
import { emitTo, type FacilitatorContext } from "./facilitator-context.ts";
import { isOfFloat } from "./facilitator-refunds.ts";
import { keepEngine } from "./keep-engine.ts";
import { openChain } from "./open-chain.ts";
import { checkNetworks } from "./ready/check-networks.ts";
import { createLedgerHealth } from "./ready/ledger-health.ts";
import { registerReadiness } from "./ready/readiness-metric.ts";
import { setInitialSeries } from "./settle/initial-series.ts";
import { createMetrics } from "./settle/metrics.ts";
import type { SettlementListener } from "./settle/settlement-event.ts";
import { startEngine } from "./start-engine.ts";
import { createStopBoard } from "./stops/stop-board.ts";
import { createVerifier } from "./verify/verifier.ts";
import { openVisitBoard } from "./visits/open-visit-board.ts";

/**
 * Reads the options, connects to the chains, and begins to start the engine.
 *
 * @throws ConfigurationError with all problems of the options
 */
export function openFacilitator(
  options: FacilitatorOptions & SettlementOptions,
): FacilitatorContext {
  const configuration = readFacilitatorOptions(options);
  const settings = readSettlementOptions(options);
  const { logger, clock, now } = configuration;
  const metrics = createMetrics();
  setInitialSeries(metrics, configuration.networks);
  const listeners = new Set<SettlementListener>();
  const chains = configuration.networks.map((network) =>
    openChain(network, { clock, now, metrics, logger }),
  );
  const verifier = createVerifier({
    acceptsPayersWithCode: settings.acceptsPayersWithCode,
    logger,
    now,
    networks: new Map(
      chains.map(({ configuration: { network, assets, blockTimeSeconds }, pool, simulator }) => [
        network,
        { rpc: pool, simulator, assets, blockTimeSeconds },
      ]),
    ),
  });
  const stops = createStopBoard();
  const channels: FacilitatorContext["channels"] = { sales: undefined };
  const visits = openVisitBoard(configuration, metrics.registry);
  const patienceMs = configuration.startTimeoutMs;
  const checks = checkNetworks({
    networks: chains,
    escrows: [configuration.channels ?? [], configuration.hostedChannels ?? []].flat(),
    logger,
    clock,
    patienceMs,
  });
  const health = createLedgerHealth({ logger, clock });
  const engine = keepEngine({
    health,
    clock,
    patienceMs: settings.heartbeatLeaseMs,
    start: (options) =>
      startEngine({
        ...options,
        ledgerUrl: configuration.ledger,
        chains,
        checks,
        settings,
        retention: configuration.retention,
        refunds: configuration.refunds,
        channels: configuration.channels,
        hostedChannels: configuration.hostedChannels,
        onChannels(sales) {
          channels.sales = sales;
        },
        operators: configuration.operators,
        webhooks: configuration.webhooks,
        verifier,
        stops,
        visits,
        metrics,
        health,
        logger: health.logger,
        now,
        clock,
        emit(event) {
          if (!isOfFloat(configuration, event)) emitTo(listeners, configuration, event);
        },
      }),
  });
  const ready = async () => (await engine.current()).ready();
  registerReadiness(metrics.registry, { health, ready });
  return {
    configuration,
    settings,
    chains,
    verifier,
    metrics,
    listeners,
    engine,
    health,
    stops,
    visits,
    channels,
  };
}
