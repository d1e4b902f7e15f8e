import type { RpcPool } from "@coinslot/chain";
import { ConfigurationError, type Network } from "@coinslot/protocol";
import type { NetworkConfiguration } from "../facilitator-configuration.ts";
import type { Logger } from "../logger.ts";
import { checkNetwork, type NetworkReport } from "./check-network.ts";

/**
 * Checks all networks at the same time.
 *
 * @returns what was found of each; warnings have been logged.
 * @throws ConfigurationError with every problem of every network.
 */
export async function checkNetworks(options: {
  networks: readonly { configuration: NetworkConfiguration; pool: RpcPool }[];
  logger: Logger;
}): Promise<Map<Network, NetworkReport>> {
  const { networks, logger } = options;
  const reports = await Promise.all(
    networks.map(async ({ configuration, pool }) => {
      const report = await checkNetwork(configuration, pool);
      return [configuration.network, report] as const;
    }),
  );
  for (const [network, { warnings }] of reports) {
    for (const warning of warnings) logger.warn({ network }, warning);
  }
  const problems = reports.flatMap(([, report]) => report.problems);
  if (problems.length > 0) throw new ConfigurationError("The facilitator", problems);
  return new Map(reports);
}
