/**
 * Place of a transfer on its chain, as one whole number. It is the block's number, and in its lower
 * 21 bits the log's index. Its order is the order of events. So one column sorts, pages and cuts,
 * and half of every index is saved. A number holds 53 bits exactly: 2^32 blocks of 2^21 logs.
 */
export const logsPerBlock = 2 ** 21;
export const maxBlock = 2 ** 32 - 1;

/** Throws a `RangeError` on a block or log that no position can hold. */
export function positionOf(blockNumber: number, logIndex: number): number {
  if (!hasPosition(blockNumber, logIndex)) {
    throw new RangeError(`No position for log ${logIndex} of block ${blockNumber}`);
  }
  return blockNumber * logsPerBlock + logIndex;
}

export function hasPosition(blockNumber: number, logIndex: number): boolean {
  return isIndex(blockNumber, maxBlock) && isIndex(logIndex, logsPerBlock - 1);
}

export function blockOfPosition(position: number): number {
  return Math.floor(position / logsPerBlock);
}

export function logOfPosition(position: number): number {
  return position % logsPerBlock;
}

function isIndex(value: number, max: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= max;
}
