import * as z from "zod";
import { decodeBase64Json, maxAnswerHeaderLength } from "../x402/base64-json.ts";
import { remarkSchema } from "../x402/remark.ts";
import { instantSchema } from "./challenge.ts";

/** The `Payment-Receipt` of a charge that has settled. No receipt of a failure exists. */
const paymentReceiptSchema = z.object({
  status: z.literal("success"),
  method: z.string().max(64),
  /** Time of the settlement. */
  timestamp: instantSchema,
  /** Hash of the transaction. */
  reference: z.string().max(256),
  challengeId: z.string().max(512).optional(),
  chainId: z.int().positive().optional(),
  externalId: remarkSchema(256).optional(),
});

/** The receipt of a charge that has settled. */
export type PaymentReceipt = z.infer<typeof paymentReceiptSchema>;

/**
 * Encodes a receipt for the `Payment-Receipt` header: base64url of its canonical JSON. The form has
 * few members, which are written in their order (RFC 8785) instead of being sorted.
 */
export function encodePaymentReceipt(receipt: PaymentReceipt): string {
  const { chainId, challengeId, externalId, method, reference, status, timestamp } = receipt;
  const json = JSON.stringify({
    chainId,
    challengeId,
    externalId,
    method,
    reference,
    status,
    timestamp,
  });
  return Buffer.from(json, "utf8").toString("base64url");
}

/**
 * Decodes the `Payment-Receipt` header.
 *
 * @throws DecodeError
 */
export function decodePaymentReceipt(header: string): PaymentReceipt {
  return decodeBase64Json({
    noun: "The Payment-Receipt header",
    value: header,
    schema: paymentReceiptSchema,
    maxLength: maxAnswerHeaderLength,
  });
}
