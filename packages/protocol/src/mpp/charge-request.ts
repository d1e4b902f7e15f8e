import * as z from "zod";
import { addressSchema } from "../money/address.ts";
import { amountSchema } from "../money/amount.ts";
import { decodeBase64Json } from "../x402/base64-json.ts";
import { encodeCanonicalJson } from "./base64url-json.ts";

/** Method and intent of a charge on an EVM chain. */
export const evmCharge = { method: "evm", intent: "charge" } as const;

/** The one type of credential that is served and paid here: an EIP-3009 authorization. */
export const authorizationType = "authorization";

/** The `request` of an `evm`/`charge` challenge. Unknown members are kept. */
export const chargeRequestSchema = z.looseObject({
  /** In the token's smallest unit. */
  amount: amountSchema,
  /** The token contract. */
  currency: addressSchema,
  recipient: addressSchema,
  description: z.string().max(1024).optional(),
  externalId: z.string().max(256).optional(),
  methodDetails: z.looseObject({
    chainId: z.int().positive(),
    /** Absent: `transaction` and `hash`, and no `authorization`. */
    credentialTypes: z.array(z.string().max(64)).max(16).optional(),
    /** For display. */
    decimals: z.int().min(0).max(255).optional(),
    /** Shares of other recipients, for credentials of another type. */
    splits: z.array(z.unknown()).optional(),
  }),
});

/** The `request` of an `evm`/`charge` challenge. */
export type ChargeRequest = z.infer<typeof chargeRequestSchema>;

/** Encodes a charge for a challenge's `request`. */
export function encodeChargeRequest(request: ChargeRequest): string {
  return encodeCanonicalJson(request);
}

/**
 * Decodes a challenge's `request`.
 *
 * @throws DecodeError
 */
export function decodeChargeRequest(value: string): ChargeRequest {
  const noun = "The challenge's request";
  return decodeBase64Json({ noun, value, schema: chargeRequestSchema, maxLength: 16_384 });
}

/**
 * Returns whether an encoded request is in its one canonical form. Clients decode a request, and
 * encode it again into the credential: one that is not canonical would come back changed.
 */
export function isCanonicalRequest(value: string): boolean {
  return encodeChargeRequest(decodeChargeRequest(value)) === value;
}
