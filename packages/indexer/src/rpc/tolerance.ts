/** Decides whether an answer with these oddities is accepted as the chain's. */
export type Tolerance = (oddities: readonly string[]) => boolean;

/** Number of identical odd answers after which the oddity is taken for the chain's. */
const minRepetitions = 4;

/**
 * Odd answers may be faults of an endpoint, so the question is asked again. Each oddity names its
 * log. Only if each of the very same oddities keeps coming back, it is a property of the chain. A
 * token may emit a `Transfer` of another form. Make one for each question.
 */
function createTolerance(): Tolerance {
  const times = new Map<string, number>();
  return (oddities) => {
    // All are counted: an answer with many is not asked for more often than one with few.
    for (const oddity of oddities) times.set(oddity, (times.get(oddity) ?? 0) + 1);
    return oddities.every((oddity) => (times.get(oddity) ?? 0) >= minRepetitions);
  };
}

/**
 * Keeps the tolerance of a question until another one is asked. Where endpoints are slow, a
 * question fails and is asked anew before its answer has come back enough times.
 */
export function createToleranceOfLast(): (question: string) => Tolerance {
  let last: { question: string; tolerates: Tolerance } | undefined;
  return (question) => {
    if (last?.question !== question) last = { question, tolerates: createTolerance() };
    return last.tolerates;
  };
}
