import { type RpcCall, RpcError, type RpcRequester } from "@coinslot/chain";
import {
  type Address,
  eip3009Abi,
  FacilitatorError,
  type Hex,
  type TokenDomain,
} from "@coinslot/protocol";
import { decodeFunctionResult, encodeFunctionData, toHex, zeroAddress } from "viem";
import * as z from "zod";
import { isRevert } from "../evm/is-revert.ts";

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
  const [code, state, separator, domain, name, version] = await ask(rpc, [
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

const hexSchema = z.templateLiteral(["0x", z.string().regex(/^[0-9a-fA-F]*$/)]);

async function ask(rpc: RpcRequester, calls: readonly RpcCall[]): Promise<(Hex | undefined)[]> {
  try {
    const outcomes = await rpc.requestMany(calls);
    return outcomes.map((outcome) => {
      if (outcome.ok) return hexSchema.parse(outcome.result);
      // The contract has no such function.
      if (isRevert(outcome.error)) return undefined;
      throw outcome.error;
    });
  } catch (cause) {
    if (!(cause instanceof RpcError || cause instanceof z.ZodError)) throw cause;
    const kind = cause instanceof RpcError ? "unavailable" : "bad_response";
    throw new FacilitatorError("The chain cannot be read at the moment", { kind, cause });
  }
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
