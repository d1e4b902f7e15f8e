/**
 * The service gave no answer, or one that is not its own: a network fault, a timeout, a proxy's
 * page.
 */
export class ApiUnreachableError extends Error {
  override readonly name = "ApiUnreachableError";
  /** The same request may succeed later. */
  readonly retryable = true;
}
