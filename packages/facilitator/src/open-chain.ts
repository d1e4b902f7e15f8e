import {
  type BlockWatcher,
  type Clock,
  createBlockWatcher,
  createRpcPool,
  getChainPreset,
  type RpcPool,
} from "@coinslot/chain";
import type { NetworkConfiguration } from "./configuration/facilitator-configuration.ts";
import type { Logger } from "./logger.ts";
import { type BlockClock, createBlockClock } from "./settle/block-clock.ts";
import type { SettlementMetrics } from "./settle/metrics.ts";
import { createTrialFloor, type TrialFloor } from "./settle/trial-floor.ts";
import { createSimulator, type Simulator } from "./simulation/simulator.ts";
import { type TrialSender, trialPrice } from "./simulation/trial-sender.ts";
import { trialSpacing } from "./simulation/trial-spacing.ts";

/** One configured network with its connections. */
export interface Chain {
  configuration: NetworkConfiguration;
  pool: RpcPool;
  watcher: BlockWatcher;
  blocks: BlockClock;
  simulator: Simulator;
  /** Sender of its trials. The engine keeps the relayer's balance in it. */
  sender: TrialSender;
  /** Number of living processes that share its ledger. The engine keeps it. */
  fleet: { size: () => number };
  trialFloor: TrialFloor;
}

/** Connects to a network. Sends no request yet. */
export function openChain(
  configuration: NetworkConfiguration,
  {
    clock,
    now,
    metrics,
    logger,
  }: { clock: Clock; now: () => number; metrics: SettlementMetrics; logger: Logger },
): Chain {
  const { chainId, rpcUrls, callGas, relayers } = configuration;
  const { network, callsPerSecond } = configuration;
  const pool = createRpcPool({
    chainId,
    rpcUrls,
    clock,
    now,
    ...(callsPerSecond !== undefined && { callsPerSecond }),
    onRequest({ endpoint, calls }) {
      metrics.nodeRequests.inc({ network, endpoint });
      for (const { method } of calls) metrics.nodeCalls.inc({ network, method });
    },
    onEvent(event) {
      if (event.type === "endpoint-wrong-chain") {
        const { endpoint, chainId: found } = event;
        const facts = { network, endpoint, found, expected: chainId };
        logger.error(facts, "An endpoint serves another chain, and is not used");
      }
      if (event.type !== "endpoint-failed") return;
      const { endpoint, kind } = event;
      metrics.nodeFailures.inc({ network, endpoint, kind });
    },
  });
  // Between two looks, payments are of interest and not blocks. A few missed ones are read.
  const watcher = createBlockWatcher({ pool, clock, maxMissed: 4 });
  const { blockTimeMs } = getChainPreset(chainId);
  const blocks = createBlockClock({ blockTimeMs, now });
  watcher.subscribe(
    (event) => {
      if ("head" in event) blocks.saw(event.head);
    },
    { pollIntervalMs: Number.POSITIVE_INFINITY },
  );
  const sender: TrialSender = {
    from: relayers[0].address,
    gasPrice: undefined,
    balance: undefined,
  };
  const fleet = { size: () => 1 };
  const simulator = createSimulator({
    rpc: pool,
    callGas,
    sender: () => ({ ...sender, gasPrice: trialPrice(watcher.latest()?.baseFeePerGas) }),
    clock,
    now,
    onBlock: blocks.saw,
    spacingMs: () => trialSpacing({ processes: fleet.size(), blockTimeMs: blocks.blockTimeMs() }),
  });
  const trialFloor = createTrialFloor(async () => {
    const { number, timestamp } = await watcher.read(0);
    return { number, ageMs: now() - Number(timestamp) * 1_000 };
  }, blocks.blockTimeMs);
  return { configuration, pool, watcher, blocks, simulator, sender, fleet, trialFloor };
}
