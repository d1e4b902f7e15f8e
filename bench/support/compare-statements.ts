/** Statements by their text, and the payments of the same time. */
export interface CountedStatements {
  texts: ReadonlyMap<string, number>;
  payments: number;
}

const shownLength = 160;

/** Statements between two counts, the first one before the second. */
export function countedBetween(
  before: CountedStatements,
  after: CountedStatements,
): CountedStatements {
  const texts = [...after.texts].map(
    ([text, count]) => [text, count - (before.texts.get(text) ?? 0)] as const,
  );
  return { texts: new Map(texts), payments: after.payments - before.payments };
}

/**
 * Statements of 1,000 payments in each of some times, a line for each text. The lines that differ
 * most between the first and the last time come first; of a single time, the most frequent ones.
 */
export function compareStatements(times: readonly CountedStatements[], lines: number): string[] {
  const texts = new Set(times.flatMap((time) => [...time.texts.keys()]));
  const rows = [...texts].map((text) => {
    const rates = times.map((time) => (1_000 * (time.texts.get(text) ?? 0)) / time.payments);
    const [first = 0] = times.length > 1 ? rates : [];
    return { text, rates, difference: Math.abs((rates.at(-1) ?? 0) - first) };
  });
  return rows
    .sort((a, b) => b.difference - a.difference)
    .slice(0, lines)
    .map(({ text, rates }) => {
      const columns = rates.map((rate) => rate.toFixed(1).padStart(9)).join("");
      return `${columns}  ${text.slice(0, shownLength)}`;
    });
}
