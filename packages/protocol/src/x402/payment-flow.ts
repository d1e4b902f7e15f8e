import * as z from "zod";

/**
 * When a payment settles: after the handler has done its work (`authorization`, the default), or
 * before it begins (`upfront`).
 */
export const paymentFlowSchema = z.enum(["authorization", "upfront"]);

/** When a payment settles. */
export type PaymentFlow = z.infer<typeof paymentFlowSchema>;
