/**
 * A first balance needs an answer of the chain, and there was none. The same question may be
 * answered later.
 */
export class BalanceUnavailableError extends Error {
  override readonly name = "BalanceUnavailableError";
  readonly retryable = true;
}
