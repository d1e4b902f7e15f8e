import * as z from "zod";

/**
 * Time of settlement: after the handler has done its work (`authorization`, the default), or before
 * it begins (`upfront`).
 */
export const paymentFlowSchema = z.enum(["authorization", "upfront"]);

/** Time of a payment's settlement. */
export type PaymentFlow = z.infer<typeof paymentFlowSchema>;
