import { percentile } from "./measure.ts";

/** The comparison of two sides that were measured in the same turns. */
export interface Comparison {
  /** Median of ours. */
  ours: number;
  /** Median of theirs. */
  theirs: number;
  /** Median of the turns' ratios. */
  ratio: number;
  /** The middle half of the ratios, and the error of their median, in words. */
  spread: string;
}

/**
 * Measures sides in turns. Each turn has every side once, in an order that changes: a machine has
 * faster and slower minutes, and a chain slows down.
 *
 * @returns the measures of each side, one for each turn
 */
export async function takePairedTurns<Side>(
  sides: readonly Side[],
  turns: number,
  measure: (side: Side) => Promise<number>,
): Promise<number[][]> {
  const measured = sides.map((): number[] => []);
  for (let turn = 0; turn < turns; turn += 1) {
    const inTurn = [...sides.entries()];
    for (const [index, side] of turn % 2 === 0 ? inTurn : inTurn.reverse()) {
      measured[index]?.push(await measure(side));
    }
  }
  return measured;
}

/**
 * Compares the measures of two sides by the median of their ratios. A collection of the heap, or
 * other work on the machine, falls into few of many short turns. The median leaves those out.
 */
export function comparePairs(ours: readonly number[], theirs: readonly number[]): Comparison {
  const ratios = ours.map((value, turn) => value / (theirs[turn] ?? Number.NaN));
  const [lower, ratio, upper] = [0.25, 0.5, 0.75].map((share) => percentile(ratios, share));
  if (lower === undefined || ratio === undefined || upper === undefined) throw new RangeError();
  // Of a normal distribution: the middle half is 1.35 deviations wide, a median's error 1.25 of
  // one.
  const error = ((upper - lower) / 1.349) * (1.253 / Math.sqrt(ratios.length));
  const half = `half of them ${lower.toFixed(2)} to ${upper.toFixed(2)}x`;
  return {
    ours: percentile(ours, 0.5),
    theirs: percentile(theirs, 0.5),
    ratio,
    spread: `${ratios.length} turns, ${half}, ±${((100 * error) / ratio).toFixed(1)}%`,
  };
}
