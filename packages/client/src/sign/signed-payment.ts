import {
  addressSchema,
  amountSchema,
  bytes32Schema,
  headerName,
  maxHeaderLength,
  networkSchema,
} from "@coinslot/protocol";
import * as z from "zod";

/**
 * A signed payment with all that is needed to send it again. As plain JSON, it can be kept in a
 * database over a restart. Until `validBefore` it is worth its amount to its recipient, so keep it
 * like a secret.
 */
export const signedPaymentSchema = z.object({
  /** The request that it pays for. The body is the SHA-256 of its bytes, `""` if there is none. */
  request: z.object({ method: z.string(), url: z.url(), bodyHash: z.string() }),
  /** Where it is sent: the URL of the request, or where that was redirected on the same origin. */
  sendTo: z.url(),
  /** The HTTP header of the payment; its name implies the protocol and its version. */
  header: z.object({
    name: z.enum([
      headerName.payment,
      headerName.paymentSignature,
      headerName.authorization,
      headerName.paymentAuthorization,
    ]),
    value: z.string().max(maxHeaderLength),
  }),
  idempotencyKey: z.string(),
  /** The authorized terms. */
  terms: z.object({
    network: networkSchema,
    asset: addressSchema,
    payer: addressSchema,
    payTo: addressSchema,
    /** In the token's smallest unit. */
    amount: amountSchema,
    nonce: bytes32Schema,
    /** Unix seconds, within the range of dates. */
    validBefore: z.number().int().min(0).max(8_640_000_000_000),
    /** Of a payment by channel: its nonce names the payment alone, and a voucher has no end. */
    channel: z
      .object({
        id: bytes32Schema,
        /** The cumulative ceiling that the voucher allows the seller to claim. */
        ceiling: amountSchema,
        /** The deposit that goes with the voucher. It locks money, and spends none. */
        deposit: amountSchema.optional(),
      })
      .optional(),
  }),
});

/** A signed payment with all that is needed to send it again. */
export type SignedPayment = z.infer<typeof signedPaymentSchema>;

/** The payment's transfer: the part of it that is no secret. */
export type PaymentTerms = SignedPayment["terms"];
