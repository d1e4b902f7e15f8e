import type { Clock } from "@coinslot/chain";
import {
  type ChannelSales,
  ConfigurationError,
  type Network,
  settleTimeoutMsFor,
  toLowerHex,
  type VisitBoard,
} from "@coinslot/protocol";
import type { Database } from "@coinslot/storage";
import type { ChannelSettings } from "./channels/channel-settings.ts";
import type { HostedChannelSettings } from "./channels/hosted/hosted-settings.ts";
import {
  type RunningHostedChannels,
  startHostedChannels,
} from "./channels/hosted/start-hosted-channels.ts";
import { type Channels, startChannels } from "./channels/start-channels.ts";
import type { RefundSettings } from "./configuration/refund-options.ts";
import type { SettlementSettings } from "./configuration/settlement-options.ts";
import type { WebhookEndpoint } from "./configuration/webhook-options.ts";
import { describeNetwork } from "./describe-network.ts";
import { createLedger } from "./ledger/create-ledger.ts";
import type { RetentionTimes } from "./ledger/ledger-limits.ts";
import type { ProcessRelayer } from "./ledger/maintenance/process-relayers.ts";
import { leaveLedger, sendHeartbeat } from "./ledger/maintenance/processes.ts";
import { openLedger } from "./ledger/open-ledger.ts";
import { createProcessId } from "./ledger/process-id.ts";
import { findClockFault } from "./ledger/queries/common-time.ts";
import { findSoldTexts } from "./ledger/queries/find-route-of.ts";
import type { LedgerSchema } from "./ledger/schema.ts";
import type { Logger } from "./logger.ts";
import type { Chain } from "./open-chain.ts";
import type { OperatorListener } from "./operators/serve-over-http.ts";
import { checkGenesis } from "./ready/check-genesis.ts";
import type { NetworkReport } from "./ready/check-network.ts";
import { joinProblems } from "./ready/join-problems.ts";
import type { LedgerHealth } from "./ready/ledger-health.ts";
import type { SettlementContext } from "./settle/context.ts";
import { startNetworkSettlement, stopNetworkSettlement, whenReconciled } from "./settle/engine.ts";
import type { SettlementMetrics } from "./settle/metrics.ts";
import { createOutcomeNotifier } from "./settle/outcome-notifier.ts";
import type { SettlementEvent } from "./settle/settlement-event.ts";
import type { SettlingContext } from "./settle/settling-context.ts";
import { createSimulationCache } from "./simulation/simulation-cache.ts";
import { defaultCallGas } from "./simulation/simulator.ts";
import { type Housekeeping, startHousekeeping } from "./start-housekeeping.ts";
import type { StopBoard } from "./stops/stop-board.ts";
import type { Verifier } from "./verify/verifier.ts";

export interface EngineOptions {
  ledgerUrl: string;
  /** The ledger was open before. One without tables is not this one, and is not created. */
  isAnew: boolean;
  /** Called once if the ledger is not the one any more that was opened. */
  onReplaced: (reason: unknown) => void;
  health: LedgerHealth;
  chains: readonly Chain[];
  /** Findings about the networks, under way already. */
  checks: Promise<ReadonlyMap<Network, NetworkReport>>;
  settings: SettlementSettings;
  retention: RetentionTimes;
  refunds: RefundSettings;
  /** `undefined`: channels are neither followed nor claimed. */
  channels: ChannelSettings | undefined;
  /** `undefined`: no channels are served to callers. */
  hostedChannels: HostedChannelSettings | undefined;
  /** Called with the sales by channels of each start. */
  onChannels: (sales: ChannelSales | undefined) => void;
  /** `undefined`: the operator's commands are not served over HTTP. */
  operators: OperatorListener | undefined;
  webhooks: readonly WebhookEndpoint[] | undefined;
  verifier: Verifier;
  /** Filled at the start, and kept as the ledger has the switches. */
  stops: StopBoard;
  /** Filled by the facilitator, and stored by the engine. */
  visits: VisitBoard;
  metrics: SettlementMetrics;
  logger: Logger;
  /** Unix milliseconds. */
  now: () => number;
  clock: Clock;
  emit: (event: SettlementEvent) => void;
}

/** The running parts of a facilitator: its ledger and its settlement. */
export interface Engine extends SettlingContext, Housekeeping {
  /** `undefined` without the option. */
  readonly channels: Channels | undefined;
  /** `undefined` without the option. */
  readonly hostedChannels: RunningHostedChannels | undefined;
  /** Resolves when what was not final before has been reconciled. */
  ready(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens the ledger, and starts to settle. A start that fails ends what it had begun.
 *
 * @throws ConfigurationError with all problems, of the networks and of the ledger.
 */
export async function startEngine(options: EngineOptions): Promise<Engine> {
  const { ledgerUrl, isAnew, chains, checks, logger } = options;
  if (isAnew) for (const { trialFloor } of chains) trialFloor.raise();
  const processId = createProcessId();
  const [opened, checked] = await Promise.allSettled([
    openLedger({
      url: ledgerUrl,
      processId,
      mustExist: isAnew,
      onBackgroundError: (err) => logger.warn({ err }, "a database connection broke; reconnecting"),
    }),
    checks,
  ]);
  if (opened.status === "rejected" || checked.status === "rejected") {
    if (opened.status === "fulfilled") await opened.value.close();
    throw joinProblems([opened, checked]);
  }
  /** Close functions of the running parts, the first one begun last. */
  const ends = [opened.value.close];
  async function close(): Promise<void> {
    const failures: unknown[] = [];
    for (const end of ends.splice(0)) await end().catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw failures[0];
  }
  try {
    const problems = await checkGenesis(opened.value.database, options.chains, logger);
    if (problems.length > 0) throw new ConfigurationError("The facilitator", problems);
    const parts = await startParts(options, {
      processId,
      database: opened.value.database,
      reports: checked.value,
      begun: (end) => ends.unshift(end),
    });
    return { ...parts, close };
  } catch (error) {
    await close().catch((err: unknown) =>
      logger.warn({ err }, "a failed start could not clean up"),
    );
    throw error;
  }
}

async function startParts(
  options: EngineOptions,
  opened: {
    processId: string;
    database: Database<LedgerSchema>;
    reports: ReadonlyMap<Network, NetworkReport>;
    /** Registers the close function of a part, as soon as it runs. */
    begun: (end: () => Promise<void>) => void;
  },
): Promise<Omit<Engine, "close">> {
  const { chains, settings, verifier, metrics, logger, now, clock, emit } = options;
  const { processId, database, reports, begun } = opened;
  const ledger = createLedger({
    database,
    processId,
    relayers: chains.flatMap(relayersOf),
    now,
    heartbeatLeaseMs: settings.heartbeatLeaseMs,
    keepAnswersMs: settings.keepAnswersMs,
    releaseLimit: settings.releaseLimit,
    codePayers: settings.codePayers,
    answerLimits: settings.answerLimits,
  });
  begun(() => leaveLedger(ledger));
  metrics.money.nameRoutes((ids) => findSoldTexts(ledger, ids));
  await sendHeartbeat(ledger);
  for (const { fleet } of chains) fleet.size = () => ledger.heartbeat.living.length;
  // Reservations of an earlier engine of this process are looked up before they count as held.
  ledger.heartbeat.lapsedAt = now();
  const clockFault = await findClockFault(ledger);
  if (clockFault !== undefined) logger.warn({}, clockFault);
  const { times, faultPoint } = settings;
  const callGas = new Map(
    chains.map(({ configuration }) => [configuration.network, configuration.callGas]),
  );
  const simulationCache = createSimulationCache({
    freshMs: 1_000,
    keepMs: 60_000,
    callGasOf: (network) => callGas.get(network) ?? defaultCallGas,
    now: () => clock.now(),
  });
  const notifier = await createOutcomeNotifier({
    ledger,
    clock,
    logger,
    metrics,
    emit,
    pollMs: times.sweepMs,
  });
  begun(() => notifier.stop());
  const context: SettlementContext = {
    ledger,
    notifier,
    simulationCache,
    metrics,
    times,
    clock,
    now,
    logger,
    emit,
    faultPoint,
  };
  const started = await Promise.allSettled(
    chains.map(async (chain) => {
      const { network, relayers, retiring, minimumBalance, warningBalance } = chain.configuration;
      const report = reports.get(network);
      if (report === undefined) throw new TypeError(`${network} was not checked`);
      const settlement = await startNetworkSettlement({
        context,
        network: describeNetwork(chain, { report, settings, clock }),
        signers: relayers,
        retiring,
        funds: {
          minimumBalance,
          warningBalance,
          onBalance(relayer, balance) {
            if (relayer === chain.sender.from) chain.sender.balance = balance;
          },
        },
      });
      return [network, settlement] as const;
    }),
  );
  const settlements = new Map(
    started.flatMap((each) => (each.status === "fulfilled" ? [each.value] : [])),
  );
  begun(async () => {
    await Promise.all([...settlements.values()].map(stopNetworkSettlement));
  });
  for (const each of started) if (each.status === "rejected") throw each.reason;
  const channels = beginChannels(options, { context, settlements });
  options.onChannels(channels?.sales);
  if (channels) begun(() => channels.stop());
  const hostedChannels = beginHosted(options, { context, settlements, channels });
  if (hostedChannels) begun(() => hostedChannels.stop());
  const housekeeping = await startHousekeeping(options, {
    context,
    settlements,
    channels,
    verify: database.verify,
    begun,
  });

  return {
    context,
    verifier,
    settlements,
    channels,
    hostedChannels,
    timeoutMs(network, payment) {
      const served = network && settlements.get(network)?.network;
      if (served) return served.times.settleTimeoutMs(served.serveAfter(payment));
      return settings.configuredTimes.settleTimeoutMs ?? settleTimeoutMsFor(undefined);
    },
    maxAnswerBytes: settings.maxAnswerBytes,
    stops: options.stops,
    ...housekeeping,
    async ready() {
      await Promise.all([...settlements.values()].map(whenReconciled));
    },
  };
}

function beginChannels(
  { channels: settings, hostedChannels, stops, metrics }: EngineOptions,
  parts: Pick<Engine, "context" | "settlements">,
): Channels | undefined {
  const callerGasPerHour = hostedChannels?.gasPerHour;
  const shared = { ...parts, callerGasPerHour, metrics: metrics.channels, stops };
  return settings && startChannels({ ...shared, settings });
}

function beginHosted(
  { hostedChannels: settings, chains, stops, metrics }: EngineOptions,
  parts: Pick<Engine, "context" | "settlements" | "channels">,
): RunningHostedChannels | undefined {
  const assets = new Map(
    chains.map(({ configuration }) => [
      configuration.network,
      configuration.assets && new Set(configuration.assets),
    ]),
  );
  return (
    settings &&
    startHostedChannels({ ...parts, settings, assets, metrics: metrics.channels, stops })
  );
}

function relayersOf({ configuration: { network, relayers, retiring } }: Chain): ProcessRelayer[] {
  return [
    ...relayers.map(({ address }) => ({ address, isRetiring: false })),
    ...retiring.map(({ address }) => ({ address, isRetiring: true })),
  ].map(({ address, isRetiring }) => ({ network, relayer: toLowerHex(address), isRetiring }));
}
