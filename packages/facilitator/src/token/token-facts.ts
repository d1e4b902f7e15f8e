import type { RpcCall, RpcRequester } from "@coinslot/chain";
import { type Address, eip3009Abi, type Hex, type TokenDomain } from "@coinslot/protocol";
import { decodeFunctionResult, encodeFunctionData, toHex, zeroAddress } from "viem";
import { askCalls } from "./ask-calls.ts";

/**
 * Facts that a token contract returns about itself. Each member is absent where it has no such
 * function.
 */
export interface TokenFacts {
  hasCode: boolean;
  /** True if it knows authorizations (EIP-3009). */
  hasAuthorizations: boolean;
  /** `DOMAIN_SEPARATOR()`. */
  domainSeparator?: Hex | undefined;
  /** `eip712Domain()` (EIP-5267). */
  domain?: (TokenDomain & { chainId: bigint; verifyingContract: Address }) | undefined;
  /** `name()`, which need not be the domain's. */
  name?: string | undefined;
  /** `version()`. */
  version?: string | undefined;
}

const noNonce = toHex(0, { size: 32 });

/**
 * Reads a token contract's facts about itself, in one RPC request.
 *
 * @throws FacilitatorError when the chain is unreachable.
 */
export async function readTokenFacts(rpc: RpcRequester, asset: Address): Promise<TokenFacts> {
  const call = (data: Hex): RpcCall => ({
    method: "eth_call",
    params: [{ to: asset, data }, "latest"],
  });
  const abi = eip3009Abi;
  const [code, state, separator, domain, name, version] = await askCalls(rpc, [
    { method: "eth_getCode", params: [asset, "latest"] },
    call(
      encodeFunctionData({ abi, functionName: "authorizationState", args: [zeroAddress, noNonce] }),
    ),
    call(encodeFunctionData({ abi, functionName: "DOMAIN_SEPARATOR" })),
    call(encodeFunctionData({ abi, functionName: "eip712Domain" })),
    call(encodeFunctionData({ abi, functionName: "name" })),
    call(encodeFunctionData({ abi, functionName: "version" })),
  ]);
  return {
    hasCode: code !== undefined && code !== "0x",
    hasAuthorizations: decode(state, readState) !== undefined,
    domainSeparator: decode(separator, readSeparator),
    domain: decode(domain, readDomain),
    name: decode(name, readName),
    version: decode(version, readVersion),
  };
}

/** A contract may return anything. A result that cannot be decoded counts as absent. */
function decode<T>(data: Hex | undefined, read: (data: Hex) => T): T | undefined {
  if (data === undefined || data === "0x") return undefined;
  try {
    return read(data);
  } catch {
    return undefined;
  }
}

const readState = (data: Hex): boolean =>
  decodeFunctionResult({ abi: eip3009Abi, functionName: "authorizationState", data });
const readSeparator = (data: Hex): Hex =>
  decodeFunctionResult({ abi: eip3009Abi, functionName: "DOMAIN_SEPARATOR", data });
const readName = (data: Hex): string =>
  decodeFunctionResult({ abi: eip3009Abi, functionName: "name", data });
const readVersion = (data: Hex): string =>
  decodeFunctionResult({ abi: eip3009Abi, functionName: "version", data });

function readDomain(data: Hex): TokenFacts["domain"] {
  const [, name, version, chainId, verifyingContract] = decodeFunctionResult({
    abi: eip3009Abi,
    functionName: "eip712Domain",
    data,
  });
  return { name, version, chainId, verifyingContract };
}
