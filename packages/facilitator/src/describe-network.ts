import { type Clock, getChainPreset } from "@coinslot/chain";
import { multicall3Address, toLowerHex } from "@coinslot/protocol";
import type { SettlementSettings } from "./configuration/settlement-options.ts";
import type { Chain } from "./open-chain.ts";
import type { NetworkReport } from "./ready/check-network.ts";
import type { SettlementNetwork } from "./settle/context.ts";
import { createDebitedPayments } from "./settle/evidence/debited-payments.ts";
import { createLateLogs } from "./settle/evidence/late-logs.ts";
import { createBlockPace } from "./settle/pace/block-pace.ts";
import { createPacedTimes } from "./settle/pace/paced-times.ts";
import { createSpoiltBatches } from "./settle/plan/spoilt-batches.ts";
import { createFeeQuoter } from "./settle/relay/fee-quote.ts";
import { maxCallsGas } from "./settle/relay/gas.ts";

/** A network as the engine uses it, from its configuration and what its chain has. */
export function describeNetwork(
  { configuration, pool, watcher, blocks, simulator, trialFloor }: Chain,
  options: { report: NetworkReport; settings: SettlementSettings; clock: Clock },
): SettlementNetwork {
  const { report, settings, clock } = options;
  const { network, chainId, fees, callGas, serveAfter, finalAfter } = configuration;
  const preset = getChainPreset(chainId);
  // Several transactions to a block waste little of it, whatever its other transactions are.
  const share = report.blockGasLimit / 12n;
  const pace = createBlockPace({ usualMs: preset.blockTimeMs, now: () => clock.now() });
  return {
    network,
    chainId,
    rpc: pool,
    watcher,
    pace,
    times: createPacedTimes(pace, settings.configuredTimes),
    blocks,
    simulator,
    trialFloor,
    fees: createFeeQuoter({
      rpc: pool,
      feeModel: preset.feeModel,
      maxFeePerGasCap: fees.maxFeePerGas,
      tip: fees.maxPriorityFeePerGas,
      readHead: watcher.fresh,
      headAgeMs: () => watcher.status().sinceReadMs ?? Number.POSITIVE_INFINITY,
      now: () => clock.now(),
    }),
    multicall3: report.hasMulticall3 ? toLowerHex(multicall3Address) : undefined,
    limits: {
      maxPayments: settings.maxPaymentsPerTransaction,
      maxGas: share < maxCallsGas ? share : maxCallsGas,
    },
    spoilt: createSpoiltBatches({ now: () => clock.now() }),
    debited: createDebitedPayments({ rpc: pool, watcher, clock }),
    lateLogs: createLateLogs({ now: () => clock.now() }),
    maxInFlight: settings.maxTransactionsInFlight,
    callGasCap: callGas,
    pollMs: preset.pollIntervalMs,
    serveAfter: ({ value }) => serveAfter(value),
    finalAfter,
  };
}
