import * as z from "zod";
import { type Address, toLowerHex } from "../money/address.ts";
import type { Network } from "../money/network.ts";
import type { TokenDomain } from "../x402/eip3009.ts";
import { optionalOrNull } from "../x402/optional-or-null.ts";
import type { PaymentRequirements } from "../x402/payment-requirements.ts";
import { channelAmountSchema } from "./channel-amount.ts";
import { lowerAddressSchema, withdrawDelaySchema } from "./channel-config.ts";
import {
  type ChannelState,
  channelStateSchema,
  formatChannelState,
  type VoucherState,
  voucherStateSchema,
} from "./channel-state.ts";

/** Name of the scheme in an offer. */
export const channelScheme = "batch-settlement";

const zeroAddress = `0x${"0".repeat(40)}`;

/** Member `extra` of an offer. */
const offerExtraSchema = z.object({
  name: z.string().min(1),
  version: z.string().min(1),
  receiverAuthorizer: lowerAddressSchema.refine((address) => address !== zeroAddress),
  withdrawDelay: withdrawDelaySchema,
  minDeposit: optionalOrNull(channelAmountSchema),
  assetTransferMethod: optionalOrNull(z.enum(["eip3009", "permit2"])),
  /** Another manager than the seller signs for vouchers: an extension that this one is not. */
  voucherManager: z.null().optional(),
  channelState: optionalOrNull(channelStateSchema),
  voucherState: optionalOrNull(voucherStateSchema),
});

/** Terms of an offer: a buyer's channel takes them over, and a seller compares them. */
export interface ChannelOffer {
  network: Network;
  /** The most that one request may cost. */
  amount: bigint;
  token: Address;
  receiver: Address;
  receiverAuthorizer: Address;
  /** Seconds. */
  withdrawDelay: number;
  /** The token's EIP-712 domain, under which a deposit is signed. */
  domain: TokenDomain;
  transferMethod: "eip3009" | "permit2";
  /** The least deposit that the seller wants. */
  minDeposit?: bigint | undefined;
  /** In a corrective 402: the channel as the seller knows it. */
  channelState?: ChannelState | undefined;
  /** In a corrective 402: the seller's proof. */
  voucherState?: VoucherState | undefined;
}

/**
 * Reads an offer of the `batch-settlement` scheme; `undefined` where it is another or malformed.
 */
export function readChannelOffer(requirements: PaymentRequirements): ChannelOffer | undefined {
  if (requirements.scheme !== channelScheme) return undefined;
  const extra = offerExtraSchema.safeParse(requirements.extra);
  const amount = channelAmountSchema.safeParse(requirements.amount);
  if (!extra.success || !amount.success) return undefined;
  const { name, version, assetTransferMethod = "eip3009", ...terms } = extra.data;
  return {
    network: requirements.network,
    amount: amount.data,
    token: toLowerHex(requirements.asset),
    receiver: toLowerHex(requirements.payTo),
    receiverAuthorizer: terms.receiverAuthorizer,
    withdrawDelay: terms.withdrawDelay,
    domain: { name, version },
    transferMethod: assetTransferMethod,
    minDeposit: terms.minDeposit,
    channelState: terms.channelState,
    voucherState: terms.voucherState,
  };
}

/**
 * The offer of a corrective 402: the terms, with the state of the buyer's channel and the voucher
 * that proves it. The buyer believes no more than that voucher covers.
 */
export function correctChannelOffer(
  requirements: PaymentRequirements,
  { channelState, voucherState }: { channelState: ChannelState; voucherState?: VoucherState },
): PaymentRequirements {
  const { signedMaxClaimable, signature } = voucherState ?? {};
  const proof =
    signedMaxClaimable === undefined || signature === undefined
      ? {}
      : { voucherState: { signedMaxClaimable: `${signedMaxClaimable}`, signature } };
  return {
    ...requirements,
    extra: { ...requirements.extra, channelState: formatChannelState(channelState), ...proof },
  };
}
