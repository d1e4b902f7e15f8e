import type { RpcRequester } from "@coinslot/chain";
import { type Address, channelContracts, isSameAddress, type Network } from "@coinslot/protocol";
import { readChannelContracts } from "./channel-contracts.ts";
import type { Findings } from "./findings.ts";

/** An escrow contract, and the networks whose channels need it. */
export interface NeededEscrow {
  /** In lower case. */
  contract: Address;
  networks: ReadonlySet<Network>;
}

/**
 * Checks that a chain has what its channels need: the escrow with its domain and type hashes, a
 * collector of deposits, and EIP-1153. Money in another contract could never be claimed.
 *
 * @throws FacilitatorError when the chain is unreachable.
 */
export async function checkChannels(
  network: Network,
  escrows: readonly NeededEscrow[],
  rpc: RpcRequester,
): Promise<Findings> {
  const contracts = escrows.flatMap(({ contract, networks }) =>
    networks.has(network) ? [contract] : [],
  );
  const found = await Promise.all([...new Set(contracts)].map((each) => findFaults(each, rpc)));
  const remedy = "Leave the network out of channels.networks, or ask `coinslot doctor`";
  const problems = found.flat().map((fault) => `${network} ${fault}. ${remedy}.`);
  return { problems, warnings: [] };
}

/** Faults of a chain, each as the rest of a sentence. */
async function findFaults(contract: Address, rpc: RpcRequester): Promise<string[]> {
  const { present, differences, hasTransientStorage } = await readChannelContracts(rpc, contract);
  const { settlement, erc3009Collector } = channelContracts;
  const escrow = "the escrow of payment channels";
  const faults: string[] = [];
  if (!hasTransientStorage) faults.push(`lacks EIP-1153, which ${escrow} needs`);
  if (!present.has("settlement")) faults.push(`has no contract at ${contract}, ${escrow}`);
  // Without transient storage the escrow's reads may fail as well.
  else if (differences.length > 0 && hasTransientStorage) {
    faults.push(`has another contract than ${escrow} at ${contract} (${differences.join(", ")})`);
  }
  // Another escrow has a collector of its own, which only its buyers know.
  if (isSameAddress(contract, settlement) && !present.has("erc3009Collector")) {
    faults.push(`has no collector of channels' deposits at ${erc3009Collector}`);
  }
  return faults;
}
