import { type Address, isNetwork, type Network } from "@coinslot/protocol";

/** The name of a relayer's lease. All of a network begin with `relayerPrefix`. */
export function leaseNameOf({ network, relayer }: { network: Network; relayer: Address }): string {
  return relayerPrefix(network) + relayer;
}

/** The beginning of the names of a network's relayer leases. */
export function relayerPrefix(network: Network): string {
  return `${relayerLeases}${network}:`;
}

/** The beginning of the names of all relayer leases. */
export const relayerLeases = "relayer:";

/** The relayer of a lease. */
export function relayerOfLease(name: string): { network: Network; relayer: Address } | undefined {
  const [, network = "", digits] = /^relayer:(.+):0x([0-9a-f]{40})$/.exec(name) ?? [];
  return digits !== undefined && isNetwork(network)
    ? { network, relayer: `0x${digits}` }
    : undefined;
}
