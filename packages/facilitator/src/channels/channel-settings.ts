import type { Address, Hex, Network } from "@coinslot/protocol";
import type { RefundLimits } from "../ledger/channels/lock-refund.ts";
import type { DepositLimits } from "../ledger/channels/queue-deposit.ts";

/** The key that signs claims of channels: their `receiverAuthorizer`. Never a relayer's. */
export interface ClaimSigner {
  /** In lower case. */
  address: Address;
  /** Signs the digest of typed data: 65 bytes, with v as 27 or 28 and a low s. */
  sign: (hash: Hex) => Promise<Hex>;
}

/** Settings of channels, with every default filled in. Amounts are in the token's smallest unit. */
export interface ChannelSettings {
  /** The escrow contract. In lower case. */
  contract: Address;
  /** Networks whose channels are followed and sold by. */
  networks: ReadonlySet<Network>;
  /** The first one's address belongs into offers; the others sign for channels of former terms. */
  signers: readonly ClaimSigner[];
  /** Unclaimed money of one channel, or of one signer, above which it is claimed. */
  mostAtRisk: bigint;
  /** The oldest charge waits for this long, at most. */
  claimAfterMs: number;
  /** Time without a charge after which a channel is claimed where it is worth it. */
  idleMs: number;
  /** Cost of a row's gas: a claim of twenty times as much is worth it. */
  claimCost: bigint;
  /** Time for claims of all that is unclaimed, before the close. 0: none is made. */
  claimAtCloseMs: number;
  /** Shortest `withdrawDelay` of the terms that are offered, in seconds. */
  withdrawDelay: number;
  refundLimits: RefundLimits;
  depositLimits: DepositLimits;
  /** A deposit is worth its gas at least so many times. */
  minDepositWorth: number;
}

/** Longest interval of looks at the chain. */
export const longestLookMs = 300_000;
/** Rows of one claim, at most. */
export const maxClaimRows = 100;
/** A claim or settle by itself, without haste, is worth this many times its gas. */
export const worthFactor = 20n;
/**
 * Gas of a refund, in rows of a claim: 126,000 with the claim beside it. One that gives back less
 * than that costs would burn the seller's gas for its signer.
 */
export const refundRows = 5n;
/**
 * Gas of a deposit, in rows of a claim: 225,000 with the claim and the settle that its money takes.
 */
const depositRows = 9n;
/** Times that a deposit is worth its gas, where the cost of that is configured. */
export const defaultDepositWorth = 5;
/** Selling stops at this many times `mostAtRisk` unclaimed on one channel. */
export const maxUnclaimedFactor = 4n;

/**
 * Interval of the audits: all channels with unclaimed money are read, whatever events a node shows.
 */
export function auditMsOf({ withdrawDelay }: Pick<ChannelSettings, "withdrawDelay">): number {
  return Math.min(longestLookMs, (withdrawDelay * 1_000) / 20);
}

/** The smallest deposit that is worth its gas, whatever an offer asks for. */
export function minDepositWorthGas({
  claimCost,
  minDepositWorth,
}: Pick<ChannelSettings, "claimCost" | "minDepositWorth">): bigint {
  return claimCost * depositRows * BigInt(minDepositWorth);
}

/**
 * Each deposit takes 150,000 gas of the seller's. Its payer pays for one in vain by a transfer, or
 * has code: the gas budget of payers with code bounds those.
 */
export const defaultDepositLimits: DepositLimits = { perSigner: 200, failedPerPayer: 3 };

/** Gas of one caller of a hosted facilitator in an hour, on each network. */
export const defaultCallerGasPerHour = 60_000_000n;
