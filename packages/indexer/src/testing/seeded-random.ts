import { seed } from "@coinslot/devnet/effort";

/** Decisions by a seed: the same seed yields the same sequence. */
export interface Random {
  /** A whole number from `least` to `most`, both included. */
  between(least: number, most: number): number;
  chance(probability: number): boolean;
  pick<Item>(items: readonly [Item, ...Item[]]): Item;
}

/** Random decisions of one test; prints the seed, which repeats them. */
export function randomOf(test: string): Random {
  console.info(`${test}: COINSLOT_SEED=${seed}`);
  return createRandom(seed);
}

/** Mulberry32: small, and good enough to choose faults. */
function createRandom(from: number): Random {
  let state = from >>> 0;
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
  function between(least: number, most: number): number {
    return least + Math.floor(next() * (most - least + 1));
  }
  return {
    between,
    chance: (probability) => next() < probability,
    pick: (items) => items[between(0, items.length - 1)] ?? items[0],
  };
}
