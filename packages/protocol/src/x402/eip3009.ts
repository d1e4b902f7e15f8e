import { parseAbi } from "viem";
import { type Address, toLowerHex } from "../money/address.ts";
import { chainIdOf, type Network } from "../money/network.ts";
import type { Authorization } from "./authorization.ts";

/** The EIP-712 domain under which a token's authorizations are signed. */
export interface TokenDomain {
  name: string;
  version: string;
}

/** The EIP-712 type of an EIP-3009 transfer. */
export const transferWithAuthorizationTypes = {
  TransferWithAuthorization: [
    { name: "from", type: "address" },
    { name: "to", type: "address" },
    { name: "value", type: "uint256" },
    { name: "validAfter", type: "uint256" },
    { name: "validBefore", type: "uint256" },
    { name: "nonce", type: "bytes32" },
  ],
} as const;

/**
 * Typed data that a buyer signs: the EIP-712 form of an EIP-3009 transfer, as viem takes it.
 * Addresses are in lower case, since viem throws at one that is written in capitals only.
 */
export function transferTypedData(options: {
  authorization: Authorization;
  network: Network;
  asset: Address;
  domain: TokenDomain;
}) {
  const { authorization, network, asset, domain } = options;
  return {
    domain: {
      name: domain.name,
      version: domain.version,
      chainId: chainIdOf(network),
      verifyingContract: toLowerHex(asset),
    },
    types: transferWithAuthorizationTypes,
    primaryType: "TransferWithAuthorization",
    message: {
      ...authorization,
      from: toLowerHex(authorization.from),
      to: toLowerHex(authorization.to),
    },
  } as const;
}

/** The part of a token contract that payments use: EIP-3009, ERC-20 and the EIP-712 domain. */
export const eip3009Abi = parseAbi([
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)",
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
  "function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)",
  "function authorizationState(address authorizer, bytes32 nonce) view returns (bool)",
  "function balanceOf(address account) view returns (uint256)",
  "function name() view returns (string)",
  "function version() view returns (string)",
  "function decimals() view returns (uint8)",
  "function DOMAIN_SEPARATOR() view returns (bytes32)",
  "function eip712Domain() view returns (bytes1 fields, string name, string version, uint256 chainId, address verifyingContract, bytes32 salt, uint256[] extensions)",
  "event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)",
  "event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)",
  "event Transfer(address indexed from, address indexed to, uint256 value)",
]);
