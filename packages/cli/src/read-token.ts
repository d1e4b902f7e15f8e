import { type Address, type Asset, eip3009Abi } from "@coinslot/protocol";
import {
  BaseError,
  ContractFunctionExecutionError,
  domainSeparator,
  erc20Abi,
  type PublicClient,
} from "viem";

/**
 * A token contract's own metadata: its decimals, and the EIP-712 domain of its payments' signatures
 * (EIP-5267, else `name()` and `version()`).
 *
 * @throws when no node answers, and when its answers do not fit its own separator: signatures
 * are checked against that
 */
export async function readToken(client: PublicClient, address: Address): Promise<Asset> {
  const [decimals, domain, separator] = await Promise.all([
    client.readContract({ address, abi: erc20Abi, functionName: "decimals" }),
    readDomain(client, address),
    client.readContract({ address, abi: eip3009Abi, functionName: "DOMAIN_SEPARATOR" }),
  ]);
  const chainId = client.chain?.id ?? (await client.getChainId());
  const expected = domainSeparator({ domain: { ...domain, chainId, verifyingContract: address } });
  if (expected !== separator) {
    throw new Error(`The token ${address} does not return the name and version of its domain.`);
  }
  return { address, decimals, ...domain };
}

async function readDomain(
  client: PublicClient,
  address: Address,
): Promise<{ name: string; version: string }> {
  const contract = { address, abi: eip3009Abi } as const;
  try {
    const domain = await client.readContract({ ...contract, functionName: "eip712Domain" });
    return { name: domain[1], version: domain[2] };
  } catch (error) {
    if (!isAnsweredByNode(error)) throw error;
  }
  const [name, version] = await Promise.all([
    client.readContract({ ...contract, functionName: "name" }),
    client.readContract({ ...contract, functionName: "version" }),
  ]);
  return { name, version };
}

/**
 * Returns whether a node answered that the contract has no such function. A network error is no
 * such answer.
 */
function isAnsweredByNode(error: unknown): boolean {
  if (!(error instanceof ContractFunctionExecutionError)) return false;
  return (
    error.walk(
      (cause) =>
        cause instanceof BaseError && /^ContractFunction(Revert|ZeroData)/.test(cause.name),
    ) !== null
  );
}
