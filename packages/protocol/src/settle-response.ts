import { z } from "zod";
import { decodeBase64Json, encodeBase64Json } from "./base64-json.ts";

/**
 * The answer of `/settle`, and the receipt that a buyer gets: in `PAYMENT-RESPONSE` (version 2) or
 * `X-PAYMENT-RESPONSE` (version 1), also when settling failed.
 */
export const settleResponseSchema = z.object({
  success: z.boolean(),
  errorReason: z.string().max(256).nullish(),
  errorMessage: z.string().max(4096).nullish(),
  payer: z.string().max(128).nullish(),
  transaction: z.string().max(256),
  network: z.string().max(64),
  amount: z.string().max(80).nullish(),
  extensions: z.record(z.string().max(128), z.unknown()).nullish(),
});

/** The answer of `/settle`, and the receipt that a buyer gets. */
export interface SettleResponse {
  success: boolean;
  /** One of `SettleErrorReason` or `InvalidReason` from this implementation. */
  errorReason?: string | undefined;
  errorMessage?: string | undefined;
  payer?: string | undefined;
  /** Hash of the transaction, or `""` when none was sent. */
  transaction: string;
  /** CAIP-2. */
  network: string;
  /** What was transferred, in the token's smallest unit. */
  amount?: string | undefined;
}

/** Encodes the receipt for the header of the version that paid. Version 1 knows fewer members. */
export function encodeReceipt(receipt: SettleResponse, x402Version: 1 | 2): string {
  const { success, errorReason, errorMessage, payer, transaction, network, amount } = receipt;
  if (x402Version === 1) {
    return encodeBase64Json({ success, errorReason, transaction, network, payer });
  }
  return encodeBase64Json({
    success,
    errorReason,
    errorMessage,
    payer,
    transaction,
    network,
    amount,
  });
}

/**
 * Decodes a receipt header of either version.
 *
 * @throws DecodeError
 */
export function decodeReceipt(header: string): SettleResponse {
  return parseSettleResponse(
    decodeBase64Json({ noun: "The receipt header", value: header, schema: settleResponseSchema }),
  );
}

/** Drops what is absent from a parsed settle response. */
export function parseSettleResponse(wire: z.infer<typeof settleResponseSchema>): SettleResponse {
  return {
    success: wire.success,
    transaction: wire.transaction,
    network: wire.network,
    ...(wire.errorReason ? { errorReason: wire.errorReason } : {}),
    ...(wire.errorMessage ? { errorMessage: wire.errorMessage } : {}),
    ...(wire.payer ? { payer: wire.payer } : {}),
    ...(wire.amount ? { amount: wire.amount } : {}),
  };
}
