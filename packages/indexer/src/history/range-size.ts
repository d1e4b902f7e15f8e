/** Number of blocks per request. */
export interface RangeSize {
  /** The next range. */
  span(): number;
  /**
   * Returns whether an answer has shown the density of the transfers. Until then one request is
   * enough to find out.
   */
  isKnown(): boolean;
  /** A range was answered in full. */
  answered(range: { span: number; transfers: number }): void;
  /**
   * A range was refused, or could not be answered. Returns the number of blocks to try instead:
   * fewer, at least 1.
   */
  refused(span: number, suggested?: number): number;
}

/** Small enough for the densest chain, large enough to learn from. */
const firstSpan = 20;
/** Number of smaller answered ranges before a refused size is tried again. */
const answersUntilRetry = 50;

/**
 * Aims at a number of transfers for each request, by the density of the answer before. Grows by at
 * most a fixed step, so that one empty stretch does not lead to a huge request. Halves when
 * refused, or takes the endpoint's suggestion if that is less. So it converges under any limits,
 * and a suggestion can do no harm.
 */
export function createRangeSize(options: {
  transfersPerRequest: number;
  maxBlocksPerRequest: number;
}): RangeSize {
  const { transfersPerRequest, maxBlocksPerRequest } = options;
  const step = Math.max(1, Math.ceil(maxBlocksPerRequest / 20));
  let span = Math.min(firstSpan, maxBlocksPerRequest);
  let ceiling = maxBlocksPerRequest;
  let answersSinceRefusal = 0;
  let isKnown = false;

  return {
    span: () => span,
    isKnown: () => isKnown,
    answered(range) {
      isKnown = true;
      answersSinceRefusal += 1;
      if (answersSinceRefusal > answersUntilRetry) ceiling = maxBlocksPerRequest;
      const density = range.transfers / range.span;
      const wanted = Math.floor(transfersPerRequest / Math.max(density, 1e-9));
      span = Math.max(1, Math.min(wanted, span + step, ceiling));
    },
    refused(refusedSpan, suggested) {
      isKnown = true;
      answersSinceRefusal = 0;
      ceiling = Math.max(1, Math.min(ceiling, refusedSpan - 1));
      const half = Math.max(1, Math.floor(refusedSpan / 2));
      const isUseful = suggested !== undefined && suggested >= 1 && suggested < refusedSpan;
      const smaller = isUseful ? Math.floor(suggested) : half;
      span = Math.min(span, smaller);
      return smaller;
    },
  };
}
