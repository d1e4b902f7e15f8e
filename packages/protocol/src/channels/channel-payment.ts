import * as z from "zod";
import { decodeBase64Value, encodeBase64Json, parseShape } from "../x402/base64-json.ts";
import { freezeMessage } from "../x402/frozen-message.ts";
import { optionalOrNull } from "../x402/optional-or-null.ts";
import { nounOfV2, type PaymentPayloadV2, parsePaymentV2 } from "../x402/payment-payload.ts";
import { paymentRequirementsSchema } from "../x402/payment-requirements.ts";
import { resourceInfoSchema } from "../x402/resource-info.ts";
import type { SettleResponse } from "../x402/settle-response.ts";
import { channelScheme } from "./channel-offer.ts";
import { channelPayloadSchema } from "./channel-payload.ts";
import { type ChannelReceipt, formatChannelReceipt } from "./channel-state.ts";
import { rememberParsed } from "./remember-parsed.ts";

/** Of as many offers as one process may have. */
const accepted = rememberParsed(
  paymentRequirementsSchema.extend({ scheme: z.literal(channelScheme) }),
  { size: 256 },
);

const channelPaymentSchema = z.object({
  x402Version: z.literal(2),
  payload: channelPayloadSchema,
  accepted,
  resource: optionalOrNull(resourceInfoSchema),
  extensions: optionalOrNull(z.record(z.string().max(128), z.unknown())),
});

/** A payment by a channel: the `PAYMENT-SIGNATURE` header of the `batch-settlement` scheme. */
export type ChannelPayment = z.infer<typeof channelPaymentSchema>;

/**
 * Decodes the `PAYMENT-SIGNATURE` header of either scheme, by the one that it accepts. The payment
 * cannot be changed.
 *
 * @throws DecodeError
 */
export function decodePaymentOfAnyScheme(header: string): PaymentPayloadV2 | ChannelPayment {
  const value = decodeBase64Value({ noun: nounOfV2, value: header });
  if (!acceptsChannel(value)) return parsePaymentV2(value);
  return freezeMessage(parseShape({ noun: nounOfV2, value, schema: channelPaymentSchema }));
}

/** Returns whether a decoded payment is one by a channel. */
export function isChannelPayment(
  payment: PaymentPayloadV2 | ChannelPayment,
): payment is ChannelPayment {
  return "type" in payment.payload;
}

function acceptsChannel(value: unknown): boolean {
  if (typeof value !== "object" || value === null || !("accepted" in value)) return false;
  const { accepted } = value;
  if (typeof accepted !== "object" || accepted === null || !("scheme" in accepted)) return false;
  return accepted.scheme === channelScheme;
}

/** Encodes the receipt of a payment by a channel for the `PAYMENT-RESPONSE` header. */
export function encodeChannelReceipt(receipt: SettleResponse, extra: ChannelReceipt): string {
  const { success, errorReason, payer, transaction, network, amount = "" } = receipt;
  return encodeBase64Json({
    success,
    errorReason,
    payer,
    transaction,
    network,
    amount,
    extra: formatChannelReceipt(extra),
  });
}
