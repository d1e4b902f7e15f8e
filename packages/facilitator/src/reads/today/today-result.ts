import * as z from "zod";
import { moneySchema } from "../wire-forms.ts";

const stageSchema = z.object({
  /**
   * `handler`: from the reservation to the queue. `plan`: to a signed transaction. `confirm`: to
   * its block. `deliver`: from the reservation to the answer. `finalise`: from the block to
   * finality.
   */
  stage: z.string(),
  /** Payments that were measured: the newest 1,000 at most. */
  count: z.number(),
  p50Ms: z.number(),
  p99Ms: z.number(),
});

const figuresSchema = z.object({
  from: z.string(),
  to: z.string(),
  /** Confirmed payments, by token. */
  income: z.array(moneySchema),
  payments: z.object({
    confirmed: z.number(),
    open: z.number(),
    failed: z.number(),
    expired: z.number(),
    released: z.number(),
  }),
  /**
   * Charges on channels, of the whole day: they are summed by the day. `charged` is income, too,
   * and stands beside `income`.
   */
  channels: z
    .object({ charges: z.number(), charged: z.array(moneySchema) })
    .default({ charges: 0, charged: [] }),
  /** Refunds that were begun and are not void. */
  refunds: z.object({ count: z.number(), amounts: z.array(moneySchema) }),
  /** Requests whose payment was refused, of the whole day: they are counted by the day. */
  refusals: z.number(),
  stages: z.array(stageSchema),
});

/** Figures of a time. */
export type Figures = z.output<typeof figuresSchema>;

const attentionSchema = z.object({
  /** Term for programs, such as `relayer_low`. A later release may have more. */
  code: z.string(),
  /** `critical`, `warning` or `notice`. */
  urgency: z.string(),
  /** Page of the documentation, with its anchor. */
  runbook: z.string(),
  network: z.string().nullable(),
  /** The relayer, route, receiver or endpoint. */
  subject: z.string().nullable(),
  /** Number of things of this kind. */
  count: z.number(),
  since: z.string().nullable(),
  /** The rest in words, for people. */
  detail: z.string().nullable(),
});

/** A thing that needs a person. */
export type Attention = z.infer<typeof attentionSchema>;

export const todayResult = z.object({
  at: z.string(),
  /** `ledger`: no running seller was asked; balances, chains and disk are not known. */
  source: z.enum(["seller", "ledger"]),
  /** From midnight in UTC until now. */
  today: figuresSchema,
  /** The same part of the day a week ago. */
  lastWeek: figuresSchema,
  /** The most urgent first. */
  attention: z.array(attentionSchema),
});

/** The state of a seller. */
export type Today = z.infer<typeof todayResult>;
