import * as z from "zod";
import { optionalOrNull } from "./optional-or-null.ts";
import { remarkSchema } from "./remark.ts";

/**
 * The answer of `/verify`. An invalid payment is an answer, not an error: `isValid` is false and
 * `invalidReason` holds the reason.
 */
export const verifyResponseSchema = z.object({
  isValid: z.boolean(),
  invalidReason: optionalOrNull(remarkSchema(256)),
  invalidMessage: optionalOrNull(remarkSchema(1024)),
  payer: optionalOrNull(z.string().max(128)),
});

/** The answer of `/verify`. Members that do not apply are absent. */
export interface VerifyResponse {
  isValid: boolean;
  /** One of `InvalidReason` from this implementation; another facilitator may return others. */
  invalidReason?: string;
  /** The same in words, for people; never an internal address, a key or a stack. */
  invalidMessage?: string;
  payer?: string;
}

/** Drops absent members from a parsed verify response. */
export function parseVerifyResponse(wire: z.infer<typeof verifyResponseSchema>): VerifyResponse {
  return {
    isValid: wire.isValid,
    ...(wire.invalidReason ? { invalidReason: wire.invalidReason } : {}),
    ...(wire.invalidMessage ? { invalidMessage: wire.invalidMessage } : {}),
    ...(wire.payer ? { payer: wire.payer } : {}),
  };
}
