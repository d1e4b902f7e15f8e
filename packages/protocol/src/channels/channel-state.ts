import * as z from "zod";
import { toLowerHex } from "../money/address.ts";
import { optionalOrNull } from "../x402/optional-or-null.ts";
import { channelAmountSchema, uint256Schema } from "./channel-amount.ts";
import { lowerBytes32Schema } from "./channel-config.ts";

/** State of a channel in a receipt, a corrective 402 or an answer of `/verify`. */
export const channelStateSchema = z.object({
  channelId: lowerBytes32Schema,
  /** Everything deposited and not paid back, with what is claimed. */
  balance: channelAmountSchema,
  totalClaimed: channelAmountSchema,
  /** Unix seconds; 0 without a pending withdrawal. */
  withdrawRequestedAt: z.int().min(0),
  refundNonce: uint256Schema,
  /** Charged by this seller so far. A facilitator does not know it. */
  chargedCumulativeAmount: optionalOrNull(channelAmountSchema),
});

/** State of a channel. */
export type ChannelState = z.infer<typeof channelStateSchema>;

/** The last voucher that a seller has of a channel: its proof of what was charged. */
export const voucherStateSchema = z.object({
  signedMaxClaimable: optionalOrNull(channelAmountSchema),
  signature: optionalOrNull(
    z
      .templateLiteral(["0x", z.string().regex(/^(?:[0-9a-fA-F]{2}){0,4096}$/)])
      .transform(toLowerHex),
  ),
});

/** The last voucher that a seller has of a channel. */
export type VoucherState = z.infer<typeof voucherStateSchema>;

/** Member `extra` of a receipt for a voucher, a deposit or a refund. */
export const channelReceiptSchema = z.object({
  /** At most the amount offered. Absent in the receipt of a refund. */
  chargedAmount: optionalOrNull(channelAmountSchema),
  channelState: optionalOrNull(channelStateSchema),
});

/** Member `extra` of a receipt. */
export type ChannelReceipt = z.infer<typeof channelReceiptSchema>;

/** Writes a state in its wire form. */
export function formatChannelState(state: ChannelState): z.input<typeof channelStateSchema> {
  const { channelId, balance, totalClaimed, withdrawRequestedAt, refundNonce } = state;
  const charged = state.chargedCumulativeAmount;
  return {
    channelId,
    balance: `${balance}`,
    totalClaimed: `${totalClaimed}`,
    withdrawRequestedAt,
    refundNonce: `${refundNonce}`,
    ...(charged === undefined ? {} : { chargedCumulativeAmount: `${charged}` }),
  };
}

/** Writes the `extra` of a receipt in its wire form. */
export function formatChannelReceipt(
  receipt: ChannelReceipt,
): z.input<typeof channelReceiptSchema> {
  const { chargedAmount, channelState } = receipt;
  return {
    ...(chargedAmount === undefined ? {} : { chargedAmount: `${chargedAmount}` }),
    ...(channelState === undefined ? {} : { channelState: formatChannelState(channelState) }),
  };
}
