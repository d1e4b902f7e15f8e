import * as z from "zod";
import { networkNameSchema } from "../money/network.ts";
import { exactEvmPayloadSchema } from "./authorization.ts";
import {
  decodeBase64Json,
  decodeBase64Value,
  encodeBase64Json,
  parseShape,
} from "./base64-json.ts";
import { freezeMessage, isFrozenMessage } from "./frozen-message.ts";
import { optionalOrNull } from "./optional-or-null.ts";
import { paymentRequirementsSchema } from "./payment-requirements.ts";
import { resourceInfoSchema } from "./resource-info.ts";

/** A payment in version 1: the `X-PAYMENT` header. It names no asset. */
const paymentPayloadV1Schema = z.object({
  x402Version: z.literal(1),
  scheme: z.string().min(1).max(64),
  network: networkNameSchema,
  payload: exactEvmPayloadSchema,
});

/** A payment in version 2: the `PAYMENT-SIGNATURE` header. It repeats the offer that it accepts. */
const paymentPayloadV2Schema = z.object({
  x402Version: z.literal(2),
  payload: exactEvmPayloadSchema,
  accepted: paymentRequirementsSchema,
  resource: optionalOrNull(resourceInfoSchema),
  extensions: optionalOrNull(z.record(z.string().max(128), z.unknown())),
});

/** A payment in either version. */
export const paymentPayloadSchema = z.discriminatedUnion("x402Version", [
  paymentPayloadV1Schema,
  paymentPayloadV2Schema,
]);

/** A payment in version 1. */
export type PaymentPayloadV1 = z.infer<typeof paymentPayloadV1Schema>;
/** A payment in version 2. */
export type PaymentPayloadV2 = z.infer<typeof paymentPayloadV2Schema>;
/** A payment in either version. */
export type PaymentPayload = z.infer<typeof paymentPayloadSchema>;

/** Encodes a payment for its request header. */
export function encodePaymentPayload(payload: PaymentPayload): string {
  return encodeBase64Json(payload);
}

/**
 * Decodes the `X-PAYMENT` header. The payment cannot be changed.
 *
 * @throws DecodeError
 */
export function decodePaymentV1(header: string): PaymentPayloadV1 {
  const noun = "The X-PAYMENT header";
  return mark(decodeBase64Json({ noun, value: header, schema: paymentPayloadV1Schema }));
}

/**
 * Decodes the `PAYMENT-SIGNATURE` header. The payment cannot be changed.
 *
 * @throws DecodeError
 */
export function decodePaymentV2(header: string): PaymentPayloadV2 {
  return parsePaymentV2(decodeBase64Value({ noun: nounOfV2, value: header }));
}

/** The `PAYMENT-SIGNATURE` header in an error's sentence. */
export const nounOfV2 = "The PAYMENT-SIGNATURE header";

/**
 * Reads a payment of version 2 from decoded JSON. It cannot be changed.
 *
 * @throws DecodeError
 */
export function parsePaymentV2(value: unknown): PaymentPayloadV2 {
  return mark(parseShape({ noun: nounOfV2, value, schema: paymentPayloadV2Schema }));
}

/**
 * Composes a payment of version 2 from parts that have their shape, such as those of another
 * protocol. It cannot be changed, and passes for a decoded one: no layer reads its shape again.
 */
export function composePaymentV2(
  parts: Pick<PaymentPayloadV2, "payload" | "accepted">,
): PaymentPayloadV2 {
  return mark({ x402Version: 2, ...parts });
}

const decoded = new WeakSet<object>();

/**
 * Returns whether a value is a payment that was decoded or composed here: it has the shape of one,
 * and keeps it.
 */
export function isDecodedPayment(value: unknown): value is PaymentPayload {
  return isFrozenMessage(value) && decoded.has(value);
}

function mark<Payload extends PaymentPayload>(payload: Payload): Payload {
  decoded.add(payload);
  return freezeMessage(payload);
}
