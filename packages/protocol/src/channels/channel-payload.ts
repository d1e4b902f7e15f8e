import * as z from "zod";
import { toLowerHex } from "../money/address.ts";
import { optionalOrNull } from "../x402/optional-or-null.ts";
import { channelAmountSchema, uint256Schema } from "./channel-amount.ts";
import { channelConfigSchema, lowerAddressSchema, lowerBytes32Schema } from "./channel-config.ts";
import { rememberParsed } from "./remember-parsed.ts";

/**
 * A signature as it travels: up to 4 KiB, since contract accounts choose their own form. Its bytes
 * are kept; only the letter case of the hex digits is not.
 */
const signatureSchema = z
  .templateLiteral(["0x", z.string().regex(/^(?:[0-9a-fA-F]{2}){0,4096}$/)])
  .transform(toLowerHex);

/** A signed ceiling on everything that is ever claimed of a channel. */
export const voucherSchema = z.object({
  channelId: lowerBytes32Schema,
  maxClaimableAmount: channelAmountSchema,
  signature: signatureSchema,
});

/** A signed ceiling on everything that is ever claimed of a channel. */
export type Voucher = z.infer<typeof voucherSchema>;

const erc3009AuthorizationSchema = z.object({
  validAfter: uint256Schema,
  validBefore: uint256Schema,
  /** Drawn anew for each deposit; the authorization's nonce is a hash of it and the channel. */
  salt: lowerBytes32Schema,
  signature: signatureSchema,
});

const permit2AuthorizationSchema = z.object({
  from: lowerAddressSchema,
  permitted: z.object({ token: lowerAddressSchema, amount: channelAmountSchema }),
  spender: lowerAddressSchema,
  nonce: uint256Schema,
  deadline: uint256Schema,
  witness: z.object({ channelId: lowerBytes32Schema }),
  signature: signatureSchema,
});

/** Exactly one of both: with both, it would be open which of them is executed. */
const depositAuthorizationSchema = z.union([
  z.object({
    erc3009Authorization: erc3009AuthorizationSchema,
    permit2Authorization: z.undefined().optional(),
  }),
  z.object({
    erc3009Authorization: z.undefined().optional(),
    permit2Authorization: permit2AuthorizationSchema,
  }),
]);

/** Of as many buyers as one process may serve in a while; each takes a kilobyte. */
const channelConfig = rememberParsed(channelConfigSchema, { size: 4_096 });

const ofChannel = { channelConfig, voucher: voucherSchema };

/** Money for a channel, and the first voucher on it. */
const depositPayloadSchema = z.object({
  type: z.literal("deposit"),
  ...ofChannel,
  deposit: z.object({ amount: channelAmountSchema, authorization: depositAuthorizationSchema }),
});

/** Payment of one request. */
const voucherPayloadSchema = z.object({ type: z.literal("voucher"), ...ofChannel });

/** Request for the rest of the money, with a voucher for what was charged so far. */
const refundPayloadSchema = z.object({
  type: z.literal("refund"),
  ...ofChannel,
  /** All that is not claimed, where it is absent. */
  amount: optionalOrNull(channelAmountSchema),
});

/** Payload of a buyer in the `batch-settlement` scheme, read into numbers and lower case. */
export const channelPayloadSchema = z.discriminatedUnion("type", [
  depositPayloadSchema,
  voucherPayloadSchema,
  refundPayloadSchema,
]);

/** Payload of a buyer in the `batch-settlement` scheme. */
export type ChannelPayload = z.infer<typeof channelPayloadSchema>;

/** Most rows of one claim: 100 take 2.4 million gas. */
export const maxClaimRows = 100;

const claimSchema = z.object({
  voucher: z.object({ channel: channelConfigSchema, maxClaimableAmount: channelAmountSchema }),
  signature: signatureSchema,
  totalClaimed: channelAmountSchema,
});

/** One row of a claim: a voucher, and the part of it that is claimed. */
export type ChannelClaim = z.infer<typeof claimSchema>;

/** Payloads that a seller's server sends to a facilitator's `/settle`, beside a buyer's deposit. */
export const channelOperationSchema = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("claim"),
    claims: z.array(claimSchema).min(1).max(maxClaimRows),
    claimAuthorizerSignature: optionalOrNull(signatureSchema),
  }),
  z.object({
    type: z.literal("settle"),
    receiver: lowerAddressSchema,
    token: lowerAddressSchema,
  }),
  z.object({
    ...refundPayloadSchema.shape,
    amount: channelAmountSchema,
    refundNonce: uint256Schema,
    /** Claimed in the same transaction, before the refund. */
    claims: z.array(claimSchema).max(maxClaimRows),
    refundAuthorizerSignature: optionalOrNull(signatureSchema),
    claimAuthorizerSignature: optionalOrNull(signatureSchema),
  }),
]);

/** Payload that a seller's server sends to a facilitator's `/settle`. */
export type ChannelOperation = z.infer<typeof channelOperationSchema>;
