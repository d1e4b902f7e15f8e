import { z } from "zod";

/**
 * The answer of `/verify`. An invalid payment is an answer, not an error: `isValid` is false and
 * `invalidReason` says why.
 */
export const verifyResponseSchema = z.object({
  isValid: z.boolean(),
  invalidReason: z.string().max(256).nullish(),
  invalidMessage: z.string().max(4096).nullish(),
  payer: z.string().max(128).nullish(),
});

/** The answer of `/verify`. */
export interface VerifyResponse {
  isValid: boolean;
  /** One of `InvalidReason` from this implementation; another facilitator may say others. */
  invalidReason?: string | undefined;
  /** The same in words, for people; never an address of ours, a key or a stack. */
  invalidMessage?: string | undefined;
  payer?: string | undefined;
}
