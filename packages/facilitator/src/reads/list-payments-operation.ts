import { addressSchema } from "@coinslot/protocol";
import * as z from "zod";
import { paymentStates } from "../ledger/schema.ts";
import { defineOperation } from "../operators/operation.ts";
import { paymentRecordSchema } from "./payment-record.ts";
import { searchPayments } from "./search-payments.ts";
import { limitArgument, networkArgument, timeArgument } from "./wire-forms.ts";

const wires = ["x402v1", "x402v2", "mpp"] as const;
const defaultLimit = 50;

/** Argument of `payments.list`: every member narrows the list. */
export const paymentsListArgument = z.strictObject({
  /** An address, transaction hash, route, id or nonce. */
  search: z.string().max(500).optional(),
  state: z.enum(paymentStates).optional(),
  route: z.string().max(500).optional(),
  /** Address of a token. */
  token: addressSchema.optional(),
  network: networkArgument.optional(),
  wire: z.enum(wires).optional(),
  payer: addressSchema.optional(),
  /** Time of creation: since then, and before then. */
  from: timeArgument.optional(),
  to: timeArgument.optional(),
  cursor: z
    .string()
    .regex(/^[0-9a-f]{44}$/, "is no cursor of a page")
    .optional(),
  /** Default 50. */
  limit: limitArgument.optional(),
});

/** Meaning of the search text. */
const searchMatchSchema = z.object({
  /**
   * `payment`, `refund`, `nonce`, `transaction`, `payer`, `token`, `recipient`, `route`, `none`.
   */
  kind: z.string(),
  /** Routes with the text in their names, where no single one has it. */
  routes: z.array(z.string()),
});

export const paymentsListResult = z.object({
  /** `null` without a search text. `none`: the ledger knows no such thing. */
  matched: searchMatchSchema.nullable(),
  payments: z.array(paymentRecordSchema),
  /**
   * Cursor of the next page; `null` on the last one. A page may have fewer payments than `limit`,
   * or none, and a next one.
   */
  nextCursor: z.string().nullable(),
});

/** A page of payments, the newest first. */
export type PaymentsList = z.infer<typeof paymentsListResult>;

/** Finds payments by a text and by filters, page by page. */
export const listPaymentsOperation = defineOperation({
  name: "payments.list",
  access: "read",
  argument: paymentsListArgument,
  result: paymentsListResult,
  async run(reads, { token, from, to, limit = defaultLimit, ...search }) {
    const { match, payments, nextCursor } = await searchPayments(reads, {
      ...search,
      asset: token,
      createdFrom: from,
      createdBefore: to,
      limit,
    });
    const matched = match && {
      kind: match.kind,
      routes: match.kind === "none" ? [...match.routes] : [],
    };
    return { matched: matched ?? null, payments, nextCursor: nextCursor ?? null };
  },
});
