import { addressSchema, amountSchema, bytes32Schema, networkSchema } from "@coinslot/protocol";
import * as z from "zod";

const unsignedRefund = z.strictObject({
  /** Of the refund. */
  id: z.string(),
  network: networkSchema,
  asset: addressSchema,
  /** Of the EIP-712 domain of the token. */
  domain: z.strictObject({ name: z.string(), version: z.string() }),
  /** Identity of the refunded payment: the refund's nonce follows from it. */
  payment: z.strictObject({
    authority: addressSchema.optional(),
    payer: addressSchema,
    nonce: bytes32Schema,
  }),
  n: z.int().min(1),
  amount: amountSchema,
  /** Unix seconds. */
  validBefore: amountSchema,
  reason: z.string().optional(),
});

/** Refunds that wait for a signature, as JSON. */
export const unsignedRefundsSchema = z.strictObject({
  format: z.literal("coinslot-refunds/1"),
  /** The account that signs. */
  float: addressSchema,
  refunds: z.array(unsignedRefund).max(1_000),
});

/** The same, each with its signature. */
export const signedRefundsSchema = unsignedRefundsSchema.extend({
  refunds: z
    .array(
      unsignedRefund.extend({
        signature: z.templateLiteral(["0x", z.string().regex(/^[0-9a-fA-F]{130}$/)]),
      }),
    )
    .max(1_000),
});

export type UnsignedRefunds = z.infer<typeof unsignedRefundsSchema>;
export type SignedRefunds = z.infer<typeof signedRefundsSchema>;
