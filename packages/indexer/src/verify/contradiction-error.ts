/**
 * An endpoint contradicts the stored range, without a proof that every endpoint confirms. The first
 * reader alone must not decide then.
 */
export class ContradictionError extends Error {
  override readonly name = "ContradictionError";
}
