import {
  type ConfiguredNetwork,
  type Environment,
  findNetworks,
} from "@coinslot/hosting/environment";
import { UsageError } from "./exit-code.ts";

/**
 * The networks that the environment configures.
 *
 * @throws UsageError with all faults, or when there is no network; no URL is repeated
 */
export function readNetworks(env: Environment): ConfiguredNetwork[] {
  const networks = findConfigured(env);
  if (networks.length === 0) {
    throw new UsageError(
      "No network is configured: set COINSLOT_NETWORK and COINSLOT_RPC_URL, or run coinslot init.",
    );
  }
  return networks;
}

/**
 * As `readNetworks`, for a command that can do without any.
 *
 * @throws UsageError with all faults
 */
export function findConfigured(env: Environment): ConfiguredNetwork[] {
  const problems: string[] = [];
  const networks = findNetworks(env, (problem) => problems.push(problem));
  if (problems.length > 0) throw new UsageError(problems.join("\n"));
  return networks;
}
