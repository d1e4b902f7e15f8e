import {
  type Clock,
  createBlockWatcher,
  getChainPreset,
  MULTICALL3_ADDRESS,
  type RpcPool,
} from "@coinslot/chain";
import {
  type AuthorizationId,
  ConfigurationError,
  type Network,
  toLowerHex,
} from "@coinslot/protocol";
import { isDatabaseError } from "@coinslot/storage";
import { z } from "zod";
import type { NetworkConfiguration } from "./facilitator-configuration.ts";
import { createLedger, type Ledger } from "./ledger/ledger.ts";
import { openLedger } from "./ledger/open-ledger.ts";
import type { Logger } from "./logger.ts";
import type { NetworkReport } from "./ready/check-network.ts";
import { createFeeQuoter } from "./settle/fee-quote.ts";
import type { SettlementMetrics } from "./settle/metrics.ts";
import { createOutcomeBoard } from "./settle/outcome-board.ts";
import { createReadingCache } from "./settle/reading-cache.ts";
import { createPaymentReserver, type ReservePayment } from "./settle/reserve-payment.ts";
import { createPaymentSettler, type PaymentSettler } from "./settle/settle-payment.ts";
import { startNetworkSettlement } from "./settle/settlement.ts";
import type { SettlementContext, SettlementNetwork } from "./settle/settlement-context.ts";
import type { SettlementEvent } from "./settle/settlement-event.ts";
import { createSingleFlight } from "./settle/single-flight.ts";
import type { SettlementSettings } from "./settlement-options.ts";
import type { Simulator } from "./simulation/simulator.ts";
import type { Verifier } from "./verify/verifier.ts";

/** One configured network with its connections. */
export interface Chain {
  configuration: NetworkConfiguration;
  pool: RpcPool;
  simulator: Simulator;
}

export interface EngineOptions {
  processId: string;
  ledgerUrl: string;
  chains: readonly Chain[];
  /** What is found of the networks, under way already. */
  checks: Promise<ReadonlyMap<Network, NetworkReport>>;
  settings: SettlementSettings;
  verifier: Verifier;
  metrics: SettlementMetrics;
  logger: Logger;
  /** Unix milliseconds. */
  now: () => number;
  clock: Clock;
  emit: (event: SettlementEvent) => void;
}

/** The running parts of a facilitator: its ledger and its settlement. */
export interface Engine extends PaymentSettler {
  readonly ledger: Ledger;
  reserve: ReservePayment;
  /** Keeps what a verification has told, for the transaction to come. */
  remember(
    id: AuthorizationId,
    facts: { payerHasCode: boolean; gasUsed?: bigint | undefined },
  ): void;
  /** Whether a relayer of the network has gas money, and payments may be accepted. */
  canPay(network: Network): boolean;
  /** Resolves when what was not final before has been reconciled. */
  ready(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens the ledger, and starts to settle.
 *
 * @throws ConfigurationError with all problems, of the networks and of the ledger.
 */
export async function startEngine(options: EngineOptions): Promise<Engine> {
  const { processId, ledgerUrl, chains, checks, settings, verifier } = options;
  const { metrics, logger, now, clock, emit } = options;
  const [opened, checked] = await Promise.allSettled([
    openLedger({
      url: ledgerUrl,
      processId,
      onBackgroundError: (err) =>
        logger.warn({ err }, "a database connection broke; it is made again"),
    }),
    checks,
  ]);
  if (opened.status === "rejected" || checked.status === "rejected") {
    if (opened.status === "fulfilled") await opened.value.close();
    throw joinProblems([opened, checked]);
  }
  const { database, close: closeDatabase } = opened.value;
  const ledger = createLedger({
    database,
    processId,
    now,
    heartbeatLeaseMs: settings.heartbeatLeaseMs,
    keepAnswersMs: settings.keepAnswersMs,
    releaseLimit: settings.releaseLimit,
  });
  await ledger.beatHeart();
  const { times, checkpoint } = settings;
  const readings = createReadingCache({ freshMs: 1_000, now: () => clock.now() });
  const board = await createOutcomeBoard({
    ledger,
    clock,
    logger,
    metrics,
    emit,
    pollMs: times.sweepMs,
  });
  const context: SettlementContext = {
    ledger,
    board,
    readings,
    metrics,
    times,
    clock,
    now,
    logger,
    emit,
    checkpoint,
  };
  const settlements = new Map(
    await Promise.all(
      chains.map(async (chain) => {
        const { network, minimumBalance, warningBalance, relayers } = chain.configuration;
        const settlement = await startNetworkSettlement({
          context,
          network: await describeNetwork(chain, {
            hasMulticall3: checked.value.get(network)?.hasMulticall3 ?? false,
            settings,
            clock,
          }),
          signers: relayers,
          funds: { minimumBalance, warningBalance },
        });
        return [network, settlement] as const;
      }),
    ),
  );
  const canPay = (network: Network) => settlements.get(network)?.funds.suffice() ?? true;
  const pools = new Map(chains.map(({ configuration, pool }) => [configuration.network, pool]));
  const reserve = createPaymentReserver({ ledger, rpcOf: (network) => pools.get(network) });
  const settler = createPaymentSettler({
    context,
    verifier,
    reserve,
    canPay,
    wake: ({ network }) => settlements.get(network)?.wake(),
    timeoutMs: settings.settleTimeoutMs,
    mostAnswerBytes: settings.mostAnswerBytes,
  });
  const housekeeping = keepHouse({ context, heartbeatLeaseMs: settings.heartbeatLeaseMs });

  return {
    ledger,
    reserve,
    settle: settler.settle,
    isBegun: settler.isBegun,
    remember: (id, { payerHasCode, gasUsed }) => readings.remember(id, { payerHasCode, gasUsed }),
    canPay,
    async ready() {
      await Promise.all([...settlements.values()].map((settlement) => settlement.ready()));
    },
    async close() {
      await housekeeping.stop();
      await Promise.all([...settlements.values()].map((settlement) => settlement.stop()));
      await board.stop();
      await ledger.leave();
      await closeDatabase();
    },
  };
}

const blockSchema = z.object({
  gasLimit: z
    .string()
    .regex(/^0x[0-9a-f]+$/i)
    .transform(BigInt),
});
/** EIP-7825 lets no transaction use more than 2^24 gas. */
const mostTransactionGas = 15_000_000n;

async function describeNetwork(
  { configuration, pool, simulator }: Chain,
  options: { hasMulticall3: boolean; settings: SettlementSettings; clock: Clock },
): Promise<SettlementNetwork> {
  const { hasMulticall3, settings, clock } = options;
  const { network, chainId, fees, callGas, serveAfter, finalAfter } = configuration;
  const preset = getChainPreset(chainId);
  const watcher = createBlockWatcher({ pool, clock });
  await watcher.refresh();
  const latest = { method: "eth_getBlockByNumber", params: ["latest", false] };
  const { gasLimit } = blockSchema.parse(await pool.request(latest));
  // Several transactions to a block waste little of it, whatever else stands there.
  const share = gasLimit / 12n;
  return {
    network,
    chainId,
    rpc: pool,
    watcher,
    simulator,
    fees: createFeeQuoter({
      rpc: pool,
      feeModel: preset.feeModel,
      maxFeePerGasCap: fees.maxFeePerGas,
      tip: fees.maxPriorityFeePerGas,
      baseFeePerGas: () => watcher.latest()?.baseFeePerGas,
      now: () => clock.now(),
    }),
    multicall3: hasMulticall3 ? toLowerHex(MULTICALL3_ADDRESS) : undefined,
    limits: {
      mostPayments: settings.mostPaymentsPerTransaction,
      mostGas: share < mostTransactionGas ? share : mostTransactionGas,
    },
    mostInFlight: settings.mostTransactionsInFlight,
    callGasCap: callGas,
    pollMs: preset.pollIntervalMs,
    serveAfter: ({ value }) => serveAfter(value),
    finalAfter,
  };
}

/** Says that this process lives, and ends what those left that do not. */
function keepHouse(options: { context: SettlementContext; heartbeatLeaseMs: number }) {
  const { ledger, board, clock, logger } = options.context;
  let cancelTimer: (() => void) | undefined;
  let isStopped = false;
  const working = createSingleFlight(async () => {
    try {
      await ledger.beatHeart();
      const { reserved, queued } = await ledger.releaseDead();
      if (reserved + queued.length > 0) {
        logger.warn(
          { reserved, queued: queued.length },
          "payments of a dead process were released",
        );
      }
      board.publish(queued);
      await ledger.dropExpiredAnswers();
    } catch (err) {
      logger.warn({ err }, "the heartbeat could not be written; it is tried again");
    }
    if (!isStopped) cancelTimer = clock.setTimer(working.trigger, options.heartbeatLeaseMs / 5);
  });
  working.trigger();
  return {
    async stop() {
      isStopped = true;
      cancelTimer?.();
      await working.stop();
      cancelTimer?.();
    },
  };
}

function joinProblems(results: readonly PromiseSettledResult<unknown>[]): unknown {
  const causes = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
  const problems = causes.flatMap((cause: unknown) => {
    if (cause instanceof ConfigurationError) return cause.problems;
    if (isDatabaseError(cause)) return [`The ledger cannot be used: ${cause.message}`];
    return undefined;
  });
  const known = problems.filter((problem) => problem !== undefined);
  if (known.length < problems.length) return causes[0];
  return new ConfigurationError("The facilitator", known, { cause: causes[0] });
}
