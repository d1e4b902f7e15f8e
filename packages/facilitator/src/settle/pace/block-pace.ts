/**
 * Pace of a chain's blocks, as one process observes it. Milliseconds of its own monotonic clock:
 * a block's time stamp is its proposer's word, in whole seconds, and may jump.
 */
export interface BlockPace {
  /** Records that a block exists by now: a new head, or a receipt in a block. */
  saw(blockNumber: number): void;
  /** Usual time between two blocks; `undefined` where it is not known yet. */
  blockMs(): number | undefined;
  /**
   * Time from which the next block may come. In the past while a block is late; `undefined` before
   * the first one.
   */
  dueAt(): number | undefined;
}

interface Sighting {
  number: number;
  at: number;
}

/**
 * Sightings from which the pace is computed. A poll that is late by half a block moves it by 1%.
 */
const maxSightings = 64;
/** A wait of more than this many blocks is a stop, unless the next one is as long. */
const stopBlocks = 4;
/** Sightings of which the earliest, by their blocks, decides about the next one. */
const gridSightings = 8;
/** A block that is later than this share of the pace begins a new grid. */
const newGrid = 3 / 4;
/** A height below the last one by more than this belongs to another chain, or an older state. */
const maxBehind = 64;

/**
 * Observes the pace of a chain's blocks.
 *
 * - **Pace**: the mean of the last 64 intervals, by block numbers, so that blocks between two polls
 *   count. A stop counts as four blocks at most. A second long wait in a row is no stop: the chain
 *   has become slower, and the mean begins anew. A burst makes no chain faster: its blocks count
 *   with the silence around them.
 * - **Due time**: a block is seen when it exists, or up to a poll later, never before. So the
 *   earliest of the last 8 sightings counts, each carried on at the pace. A block that is late by
 *   most of an interval, such as after an empty slot, begins a new grid.
 *
 * @param usualMs the pace until two blocks were seen; `undefined` where it is unknown
 */
export function createBlockPace(options: {
  usualMs: number | undefined;
  now: () => number;
}): BlockPace {
  const { now } = options;
  let blockMs = options.usualMs;
  let dueAt: number | undefined;
  let sightings: Sighting[] = [];
  let wasLong = false;
  /** The first block that is seen may have stood for its whole time. */
  let isFirst = true;
  /** First block of the grid. */
  let gridFrom = 0;

  function begin(sighting: Sighting): void {
    sightings = [sighting];
    isFirst = true;
    gridFrom = sighting.number;
    dueAt = blockMs === undefined ? undefined : sighting.at + blockMs;
  }

  /** Time of the block behind the last sighting, by the earliest sighting of the grid. */
  function next(pace: number): number {
    const last = sightings.at(-1)?.number ?? 0;
    let earliest = Number.POSITIVE_INFINITY;
    for (const { number, at } of sightings.slice(-gridSightings)) {
      if (number >= gridFrom) earliest = Math.min(earliest, at + (last + 1 - number) * pace);
    }
    return earliest;
  }

  function measure(last: Sighting, sighting: Sighting): number {
    const blocks = sighting.number - last.number;
    const surplus =
      blockMs === undefined ? 0 : sighting.at - last.at - stopBlocks * blockMs * blocks;
    if (surplus > 0 && wasLong) sightings = [last];
    // The time of a stop leaves the mean.
    else if (surplus > 0) for (const earlier of sightings) earlier.at += surplus;
    wasLong = surplus > 0 && !wasLong;
    sightings.push(sighting);
    if (isFirst) {
      isFirst = false;
      sightings.shift();
      return blockMs ?? (sighting.at - last.at) / blocks;
    }
    if (sightings.length > maxSightings) sightings.shift();
    const { number, at } = sightings[0] ?? last;
    return (sighting.at - at) / (sighting.number - number);
  }

  return {
    saw(number) {
      const sighting = { number, at: now() };
      const last = sightings.at(-1);
      if (last === undefined || number < last.number - maxBehind) return begin(sighting);
      if (number <= last.number) return;
      const expected = dueAt ?? sighting.at;
      const skipped = number - last.number - 1;
      blockMs = measure(last, sighting);
      const lateMs = sighting.at - (expected + skipped * blockMs);
      if (lateMs > newGrid * blockMs) gridFrom = number;
      dueAt = next(blockMs);
    },
    blockMs: () => blockMs,
    dueAt: () => dueAt,
  };
}
