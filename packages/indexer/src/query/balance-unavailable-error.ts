/** The chain has to be asked for a first balance, and did not answer. The same question may be answered later. */
export class BalanceUnavailableError extends Error {
  override readonly name = "BalanceUnavailableError";
  readonly retryable = true;
}
