import { blockOfPosition, logOfPosition, positionOf } from "../store/position.ts";

/** The place of the last transfer of a page; the next page begins after it. Stays valid whatever arrives or leaves. */
export interface TransferCursor {
  blockNumber: number;
  logIndex: number;
}

/** As a short text for an URL: `1234-5`. */
export function formatTransferCursor({ blockNumber, logIndex }: TransferCursor): string {
  return `${blockNumber}-${logIndex}`;
}

/** The reverse of `formatTransferCursor`; undefined for any other text. */
export function parseTransferCursor(text: string): TransferCursor | undefined {
  const [, block, log] = /^(\d{1,10})-(\d{1,7})$/.exec(text) ?? [];
  if (block === undefined || log === undefined) return undefined;
  const cursor = { blockNumber: Number(block), logIndex: Number(log) };
  try {
    positionOfCursor(cursor);
    return cursor;
  } catch {
    return undefined;
  }
}

export function positionOfCursor({ blockNumber, logIndex }: TransferCursor): number {
  return positionOf(blockNumber, logIndex);
}

export function cursorOfPosition(position: number): TransferCursor {
  return { blockNumber: blockOfPosition(position), logIndex: logOfPosition(position) };
}
