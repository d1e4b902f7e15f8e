import {
  type ChannelClaim,
  channelSettlementAbi,
  claimBatchTypedData,
  type Hex,
} from "@coinslot/protocol";
import { encodeFunctionData, hashTypedData } from "viem";
import { type ClaimRow, rowOf } from "../claims/try-claims.ts";
import type { HostedNetwork } from "./hosted-context.ts";

/** A row of a claim, with its channel. */
export interface CallerRow extends ClaimRow {
  channelId: Hex;
}

/** The rows of a claim on the wire. */
export function rowsOf(
  { digests }: HostedNetwork,
  claims: readonly ChannelClaim[],
): readonly CallerRow[] {
  return claims.map(({ voucher, signature, totalClaimed }) => ({
    config: voucher.channel,
    channelId: digests.channelIdOf(voucher.channel),
    voucher: { ceiling: voucher.maxClaimableAmount, signature },
    totalClaimed,
  }));
}

/** The digest of a claim's rows, which their authorizer signs. */
export function digestOf({ escrow: { place } }: HostedNetwork, rows: readonly CallerRow[]): Hex {
  const entries = rows.map(({ channelId, voucher, totalClaimed }) => ({
    channelId,
    maxClaimableAmount: voucher.ceiling,
    totalClaimed,
  }));
  return hashTypedData(claimBatchTypedData(entries, place));
}

/** In place of a signature that is not made yet: no other one takes more gas. */
export const longSignature: Hex = `0x${"ff".repeat(65)}`;

/** The call of a claim. */
export function encodeClaim(rows: readonly CallerRow[], signature: Hex): Hex {
  return encodeFunctionData({
    abi: channelSettlementAbi,
    functionName: "claimWithSignature",
    args: [rows.map(rowOf), signature],
  });
}
