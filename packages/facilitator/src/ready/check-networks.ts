import { type BlockWatcher, type Clock, type RpcPool, sleep } from "@coinslot/chain";
import { ConfigurationError, type Network } from "@coinslot/protocol";
import type { NetworkConfiguration } from "../configuration/facilitator-configuration.ts";
import type { Logger } from "../logger.ts";
import type { NeededEscrow } from "./check-channels.ts";
import { checkNetwork, type NetworkReport } from "./check-network.ts";

/** A network with its clients. */
export interface CheckedNetwork {
  configuration: NetworkConfiguration;
  pool: RpcPool;
  watcher: BlockWatcher;
}

/** Interval between tries to read a chain. */
const pauseMs = 250;

/**
 * Checks all networks concurrently, with retries for an unreachable chain until the deadline. A
 * problem that no retry can mend, there or on another chain, ends the retries at once.
 *
 * @returns the findings about each; warnings have been logged.
 * @throws ConfigurationError with every problem of every network.
 */
export async function checkNetworks(options: {
  networks: readonly CheckedNetwork[];
  /** Contracts of channels that are needed. */
  escrows: readonly NeededEscrow[];
  logger: Logger;
  clock: Clock;
  /** Time for which to ask again. */
  patienceMs: number;
}): Promise<Map<Network, NetworkReport>> {
  const { networks, escrows, logger, clock, patienceMs } = options;
  const deadline = clock.now() + patienceMs;
  const reports = new Map<Network, NetworkReport>();
  for (;;) {
    const unread = networks.filter(
      ({ configuration }) => reports.get(configuration.network)?.isTransient ?? true,
    );
    await Promise.all(
      unread.map(async ({ configuration, ...chain }) => {
        reports.set(
          configuration.network,
          await checkNetwork(configuration, { ...chain, escrows }),
        );
      }),
    );
    const found = [...reports.values()];
    const isHopeless = found.some(
      ({ problems, isTransient }) => problems.length > 0 && !isTransient,
    );
    const isDone = found.every(({ isTransient }) => !isTransient);
    if (isHopeless || isDone || clock.now() + pauseMs > deadline) break;
    await sleep(clock, pauseMs);
  }
  for (const [network, { warnings }] of reports) {
    for (const warning of warnings) logger.warn({ network }, warning);
  }
  const problems = [...reports.values()].flatMap((report) => report.problems);
  if (problems.length > 0) throw new ConfigurationError("The facilitator", problems);
  return reports;
}
