/** Whether an answer with these oddities is taken for what the chain says. */
export type Tolerance = (oddities: readonly string[]) => boolean;

/** An odd answer is asked for so many times. */
const TIMES = 4;

/**
 * Odd answers are faults of an endpoint, so the question is asked again. Only if the very same oddity keeps coming
 * back, it is how the chain is: a token may emit a `Transfer` of another form. Make one for each question.
 */
export function createTolerance(): Tolerance {
  const times = new Map<string, number>();
  return (oddities) => {
    if (oddities.length === 0) return true;
    const text = oddities.join("; ");
    const count = (times.get(text) ?? 0) + 1;
    times.set(text, count);
    return count >= TIMES;
  };
}
