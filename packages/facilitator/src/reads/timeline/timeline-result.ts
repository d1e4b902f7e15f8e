import * as z from "zod";
import { paymentRecordSchema } from "../payment-record.ts";

/** A payment that a call of a transaction moves, without its signature. */
const transferSchema = z.object({
  token: z.string(),
  from: z.string(),
  to: z.string(),
  value: z.string(),
  validAfter: z.string(),
  validBefore: z.string(),
  nonce: z.string(),
});

/** A signed transaction, decoded. */
const messageSchema = z.object({
  type: z.string(),
  to: z.string().nullable(),
  nonce: z.number(),
  gas: z.string(),
  /** Calls in it: one, or those of a batch. */
  calls: z.number(),
  /** The call of this payment, where it is among them. */
  transfer: transferSchema.nullable(),
});

/** Retention has deleted it. */
const prunedSchema = z.literal("pruned");

const formSchema = z.object({
  hash: z.string(),
  /** `payments`, or `filler`: it only uses the nonce up. */
  content: z.string(),
  signedAt: z.string(),
  maxFeePerGas: z.string(),
  maxPriorityFeePerGas: z.string().nullable(),
  /** A block holds this form. */
  isIncluded: z.boolean(),
  message: messageSchema.nullable(),
});

const transactionSchema = z.object({
  id: z.string(),
  network: z.string(),
  relayer: z.string(),
  nonce: z.number(),
  state: z.string(),
  createdAt: z.string(),
  hash: z.string().nullable(),
  block: z.number().nullable(),
  gasLimit: z.string(),
  gasUsed: z.string().nullable(),
  /** In wei; `null` before its block, and where the price is unknown. */
  gasCost: z.string().nullable(),
  /** Payments that it carries now. */
  payments: z.number(),
  /** The first one, then its replacements. Empty: pruned. */
  forms: z.array(formSchema),
});

const stepSchema = z.object({
  at: z.string(),
  /**
   * `reserved`, `queued`, `submitted`, `replaced`, `confirmed`, `reverted`, `lost`, `failed`,
   * `final`, `delivered`, `refund-created`, `refund-signed`, `refund-confirmed`, `refund-final`,
   * `event`, `webhook-delivered`, `webhook-dead` or `command`. A later release may have more.
   */
  kind: z.string(),
  /** Doer: `process`, `relayer`, `operator`, `receiver` or `chain`, and its name. */
  by: z.object({ kind: z.string(), name: z.string() }).nullable(),
  /** Hash, block, type of an event: as `kind` has them. */
  facts: z.record(z.string(), z.union([z.string(), z.number()])),
});

/** A step of a payment's way. */
export type TimelineStep = z.infer<typeof stepSchema>;

/**
 * The offer that the payment accepted, as its row keeps the terms. `null`: the caller did not name
 * it, or its name is forgotten. `value` is the signed one: x402 version 1 lets it exceed the price.
 */
const offerSchema = paymentRecordSchema
  .pick({
    route: true,
    resource: true,
    network: true,
    asset: true,
    symbol: true,
    value: true,
    amount: true,
    payTo: true,
    wire: true,
  })
  .extend({
    /** ISO 8601; `null`, unknown: an offer leaves no row. It was made before the reservation. */
    at: z.string().nullable(),
    scheme: z.string(),
  });

const refundSchema = z.object({
  id: z.string(),
  n: z.number(),
  state: z.string(),
  cause: z.string().nullable(),
  origin: z.string(),
  reason: z.string().nullable(),
  value: z.string(),
  amount: z.string().nullable(),
  float: z.string().nullable(),
  transaction: z.string().nullable(),
  block: z.number().nullable(),
  createdAt: z.string(),
  signedAt: z.string().nullable(),
  confirmedAt: z.string().nullable(),
  finalAt: z.string().nullable(),
});

const eventSchema = z.object({
  /** As in `webhook-id`. */
  id: z.string(),
  type: z.string(),
  at: z.string(),
  deliveries: z.array(
    z.object({
      receiver: z.string(),
      url: z.string().nullable(),
      /** `pending`, `delivered` or `dead`. */
      state: z.string(),
      attempts: z.number(),
      error: z.string().nullable(),
      endedAt: z.string().nullable(),
    }),
  ),
});

/** Everything that the ledger knows of one payment. */
export const timelineResult = z.object({
  payment: paymentRecordSchema.extend({
    scheme: z.string(),
    /** Contract that uses the nonce up. */
    authority: z.string(),
    /** Transactions that have carried it. */
    attempts: z.number(),
    /** Handler runs. */
    runs: z.number(),
    /** Its part of the gas of the transaction that tried it. */
    gasShare: z.string().nullable(),
    /** The same in wei. */
    gasCost: z.string().nullable(),
  }),
  /** The first step, which has no time of its own. */
  offer: offerSchema,
  /** From the reservation, in the order of their times. */
  steps: z.array(stepSchema),
  /** The last one that carried it, and those of its refunds. Empty: none yet, or pruned. */
  transactions: z.array(transactionSchema),
  refunds: z.array(refundSchema),
  /** Of the last 30 days, where webhooks are configured. */
  events: z.array(eventSchema),
  /** The signed authorization, without its signature. `null` before it is to be settled. */
  authorization: z.union([transferSchema, prunedSchema]).nullable(),
});

/** Everything that the ledger knows of one payment. */
export type PaymentTimeline = z.infer<typeof timelineResult>;
