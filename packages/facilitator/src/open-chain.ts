import {
  type BlockWatcher,
  type Clock,
  createBlockWatcher,
  createRpcPool,
  type RpcPool,
} from "@coinslot/chain";
import type { NetworkConfiguration } from "./configuration/facilitator-configuration.ts";
import { createSimulator, type Simulator } from "./simulation/simulator.ts";
import { type TrialSender, trialPrice } from "./simulation/trial-sender.ts";

/** One configured network with its connections. */
export interface Chain {
  configuration: NetworkConfiguration;
  pool: RpcPool;
  watcher: BlockWatcher;
  simulator: Simulator;
  /** Sender of its trials. The engine keeps the relayer's balance in it. */
  sender: TrialSender;
}

/** Connects to a network. Sends no request yet. */
export function openChain(
  configuration: NetworkConfiguration,
  { clock, now }: { clock: Clock; now: () => number },
): Chain {
  const { chainId, rpcUrls, callGas, relayers } = configuration;
  const pool = createRpcPool({ chainId, rpcUrls, clock });
  const watcher = createBlockWatcher({ pool, clock });
  const sender: TrialSender = {
    from: relayers[0].address,
    gasPrice: undefined,
    balance: undefined,
  };
  const simulator = createSimulator({
    rpc: pool,
    callGas,
    sender: () => ({ ...sender, gasPrice: trialPrice(watcher.latest()?.baseFeePerGas) }),
    now,
  });
  return { configuration, pool, watcher, simulator, sender };
}
