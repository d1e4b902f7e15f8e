/**
 * Length of random runs, as a multiple of the usual one: `COINSLOT_EFFORT`, by default 1. From 2 on
 * nothing is left out; see `byDay`.
 */
export const effort = readEffort(process.env.COINSLOT_EFFORT);

/** True of a run that leaves nothing out, as `.ci/nightly` is. */
export const isWhole = effort >= 2;

/**
 * Seed of all random decisions of a test run: `COINSLOT_SEED`, or another one each time. `.ci/run`
 * sets it by the commit's tree.
 */
export const seed = Number(process.env.COINSLOT_SEED ?? Date.now() % 1_000_000_007);

/**
 * The cases of a run: `few` by day, and all of them in a whole run. `few` has a case of every
 * subject; repetitions alone are left to the night.
 */
export function byDay<const Case>(few: readonly Case[], all: readonly Case[]): readonly Case[] {
  return isWhole ? all : few;
}

function readEffort(text: string | undefined): number {
  const effort = Number(text ?? 1);
  if (Number.isInteger(effort) && effort >= 1) return effort;
  throw new Error(`COINSLOT_EFFORT is no whole number from 1 up: ${text}`);
}
