import * as z from "zod";
import { decodeBase64Json, encodeBase64Json, maxAnswerHeaderLength } from "./base64-json.ts";
import { optionalOrNull } from "./optional-or-null.ts";
import { remarkSchema } from "./remark.ts";

/**
 * The answer of `/settle`, and the receipt that a buyer gets, also when settling failed. It is in
 * `PAYMENT-RESPONSE` (version 2) or `X-PAYMENT-RESPONSE` (version 1). Some facilitators then omit
 * the unsent transaction; a settled payment has one.
 */
export const settleResponseSchema = z
  .object({
    success: z.boolean(),
    errorReason: optionalOrNull(remarkSchema(256)),
    errorMessage: optionalOrNull(remarkSchema(1024)),
    payer: optionalOrNull(z.string().max(128)),
    transaction: optionalOrNull(z.string().max(256)),
    network: z.string().max(64),
    amount: optionalOrNull(z.string().max(80)),
    extensions: optionalOrNull(z.record(z.string().max(128), z.unknown())),
  })
  .refine(({ success, transaction }) => !success || transaction !== undefined, {
    path: ["transaction"],
  });

/**
 * The answer of `/settle`, and the receipt that a buyer gets. Members that do not apply are absent.
 */
export interface SettleResponse {
  success: boolean;
  /** One of `SettleErrorReason` from this implementation; another facilitator may return others. */
  errorReason?: string;
  /** The same in words, for people; never an internal address, a key or a stack. */
  errorMessage?: string;
  payer?: string;
  /** Hash of the transaction, or `""` when none was sent. */
  transaction: string;
  /** CAIP-2 from this implementation. */
  network: string;
  /** Transferred amount, in the token's smallest unit. */
  amount?: string;
  /** Members that extensions of version 2 add. */
  extensions?: Record<string, unknown>;
  /**
   * Unix milliseconds of a success, where the ledger knows it. It travels in no message of x402.
   */
  settledAt?: number;
}

/** Encodes the receipt for the header of the version that paid. Version 1 knows fewer members. */
export function encodeReceipt(receipt: SettleResponse, x402Version: 1 | 2): string {
  const { success, errorReason, errorMessage, payer, transaction, network } = receipt;
  if (x402Version === 1) {
    return encodeBase64Json({ success, errorReason, transaction, network, payer });
  }
  const { amount, extensions } = receipt;
  return encodeBase64Json({
    success,
    errorReason,
    errorMessage,
    payer,
    transaction,
    network,
    amount,
    extensions,
  });
}

/**
 * Decodes a receipt header of either version.
 *
 * @throws DecodeError
 */
export function decodeReceipt(header: string): SettleResponse {
  return parseSettleResponse(
    decodeBase64Json({
      noun: "The receipt header",
      value: header,
      schema: settleResponseSchema,
      maxLength: maxAnswerHeaderLength,
    }),
  );
}

/** Drops absent members from a parsed settle response. */
export function parseSettleResponse(wire: z.infer<typeof settleResponseSchema>): SettleResponse {
  return {
    success: wire.success,
    transaction: wire.transaction ?? "",
    network: wire.network,
    ...(wire.errorReason ? { errorReason: wire.errorReason } : {}),
    ...(wire.errorMessage ? { errorMessage: wire.errorMessage } : {}),
    ...(wire.payer ? { payer: wire.payer } : {}),
    ...(wire.amount ? { amount: wire.amount } : {}),
    ...(wire.extensions ? { extensions: wire.extensions } : {}),
  };
}
