/** Limit of a payer's unpaid handler runs in a window of time. */
export interface FreeRunLimit {
  /** Runs granted in any case. */
  count: number;
  windowMs: number;
  /** Or, if that is more, this share of its paid runs in as much time. Default 0.5. */
  shareOfPaid?: number | undefined;
}

/**
 * Limits of the risk taken on payers with code: contracts, and accounts that delegate to one
 * (EIP-7702).
 */
export interface CodePayerLimits {
  /**
   * Gas that payers without a record may have at risk in a minute, on each network. Four times as
   * much with one.
   */
  gasPerMinute: bigint;
  /** Time for which a payer that has burnt gas is refused, everywhere. */
  refusalMs: number;
}

export const defaultCodePayerLimits: CodePayerLimits = {
  gasPerMinute: 4_000_000n,
  refusalMs: 24 * 3_600_000,
};

/** Retention, in milliseconds after the end of a payment. */
export interface RetentionTimes {
  /** Of signed forms, and of the parts that served the payment's request. */
  keepSignaturesMs: number;
  /** Of the payment. `undefined`: for ever. */
  keepPaymentsMs: number | undefined;
  /** Of a final payment that was never delivered. `undefined`: for ever. */
  keepUndeliveredMs: number | undefined;
}
