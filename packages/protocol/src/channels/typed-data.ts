import { encodeAbiParameters, hashTypedData, keccak256 } from "viem";
import { type Address, type Hex, toLowerHex } from "../money/address.ts";
import { chainIdOf, type Network } from "../money/network.ts";
import type { TokenDomain } from "../x402/eip3009.ts";
import type { ChannelConfig } from "./channel-config.ts";
import { channelContracts } from "./channel-contracts.ts";

/** EIP-712 domain of everything that is signed for the escrow contract. */
export const channelDomain = { name: "x402 Batch Settlement", version: "1" } as const;

/** EIP-712 types of the escrow contract. */
export const channelTypes = {
  ChannelConfig: [
    { name: "payer", type: "address" },
    { name: "payerAuthorizer", type: "address" },
    { name: "receiver", type: "address" },
    { name: "receiverAuthorizer", type: "address" },
    { name: "token", type: "address" },
    { name: "withdrawDelay", type: "uint40" },
    { name: "salt", type: "bytes32" },
  ],
  Voucher: [
    { name: "channelId", type: "bytes32" },
    { name: "maxClaimableAmount", type: "uint128" },
  ],
  Refund: [
    { name: "channelId", type: "bytes32" },
    { name: "nonce", type: "uint256" },
    { name: "amount", type: "uint128" },
  ],
  ClaimBatch: [{ name: "claims", type: "ClaimEntry[]" }],
  ClaimEntry: [
    { name: "channelId", type: "bytes32" },
    { name: "maxClaimableAmount", type: "uint128" },
    { name: "totalClaimed", type: "uint128" },
  ],
} as const;

/** EIP-712 type of an EIP-3009 transfer that only its recipient may execute. */
const receiveWithAuthorizationTypes = {
  ReceiveWithAuthorization: [
    { name: "from", type: "address" },
    { name: "to", type: "address" },
    { name: "value", type: "uint256" },
    { name: "validAfter", type: "uint256" },
    { name: "validBefore", type: "uint256" },
    { name: "nonce", type: "bytes32" },
  ],
} as const;

/** Chain and escrow contract of a channel. */
export interface ChannelPlace {
  network: Network;
  /** Default: the address on every public chain. */
  contract?: Address | undefined;
}

function domainOf({ network, contract = channelContracts.settlement }: ChannelPlace) {
  return {
    ...channelDomain,
    chainId: chainIdOf(network),
    verifyingContract: toLowerHex(contract),
  } as const;
}

/** The id of a channel: the EIP-712 digest of its config, so bound to chain and contract. */
export function channelIdOf(config: ChannelConfig, place: ChannelPlace): Hex {
  return hashTypedData({
    domain: domainOf(place),
    types: channelTypes,
    primaryType: "ChannelConfig",
    message: config,
  });
}

/** Typed data of a voucher, signed by the payer's authorizer. */
export function voucherTypedData(
  message: { channelId: Hex; maxClaimableAmount: bigint },
  place: ChannelPlace,
) {
  return {
    domain: domainOf(place),
    types: channelTypes,
    primaryType: "Voucher",
    message,
  } as const;
}

/** Typed data of a refund, signed by the receiver's authorizer. `nonce` is the contract's. */
export function channelRefundTypedData(
  message: { channelId: Hex; nonce: bigint; amount: bigint },
  place: ChannelPlace,
) {
  return {
    domain: domainOf(place),
    types: channelTypes,
    primaryType: "Refund",
    message,
  } as const;
}

/** One row of a claim, as the receiver's authorizer signs it. */
export interface ClaimEntry {
  channelId: Hex;
  maxClaimableAmount: bigint;
  totalClaimed: bigint;
}

/** Typed data of the rows of one claim, signed by the receiver's authorizer. */
export function claimBatchTypedData(claims: readonly ClaimEntry[], place: ChannelPlace) {
  return {
    domain: domainOf(place),
    types: channelTypes,
    primaryType: "ClaimBatch",
    message: { claims },
  } as const;
}

/** Nonce of a deposit's authorization: it funds this channel, whoever executes it. */
export function depositNonce({ channelId, salt }: { channelId: Hex; salt: Hex }): Hex {
  return keccak256(
    encodeAbiParameters([{ type: "bytes32" }, { type: "uint256" }], [channelId, BigInt(salt)]),
  );
}

/** Typed data of a deposit by EIP-3009, signed by the payer under the token's domain. */
export function depositTypedData(options: {
  network: Network;
  token: Address;
  domain: TokenDomain;
  payer: Address;
  channelId: Hex;
  amount: bigint;
  validAfter: bigint;
  validBefore: bigint;
  salt: Hex;
  /** Default: the address on every public chain. */
  collector?: Address | undefined;
}) {
  const { network, token, domain, payer, amount, validAfter, validBefore } = options;
  return {
    domain: {
      name: domain.name,
      version: domain.version,
      chainId: chainIdOf(network),
      verifyingContract: toLowerHex(token),
    },
    types: receiveWithAuthorizationTypes,
    primaryType: "ReceiveWithAuthorization",
    message: {
      from: toLowerHex(payer),
      to: toLowerHex(options.collector ?? channelContracts.erc3009Collector),
      value: amount,
      validAfter,
      validBefore,
      nonce: depositNonce(options),
    },
  } as const;
}

/** The collector's part of a deposit call. */
export function encodeCollectorData(deposit: {
  validAfter: bigint;
  validBefore: bigint;
  salt: Hex;
  signature: Hex;
}): Hex {
  return encodeAbiParameters(
    [{ type: "uint256" }, { type: "uint256" }, { type: "uint256" }, { type: "bytes" }],
    [deposit.validAfter, deposit.validBefore, BigInt(deposit.salt), deposit.signature],
  );
}
