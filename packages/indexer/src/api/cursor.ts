import { logsPerBlock, maxBlock } from "../store/position.ts";
import { badRequest } from "./api-error.ts";

/** The place of a transfer in its chain: the end of a page, and the start of the next. */
export interface TransferPlace {
  blockNumber: number;
  logIndex: number;
}

/** Writes a place as text for a URL. */
export function encodeCursor({ blockNumber, logIndex }: TransferPlace): string {
  return `${blockNumber}-${logIndex}`;
}

/** @throws ApiError 400 on any text that `encodeCursor` does not write */
export function decodeCursor(cursor: string): TransferPlace {
  const [, block, log] = /^(0|[1-9][0-9]{0,9})-(0|[1-9][0-9]{0,6})$/.exec(cursor) ?? [];
  const [blockNumber, logIndex] = [Number(block), Number(log)];
  if (blockNumber <= maxBlock && logIndex < logsPerBlock) return { blockNumber, logIndex };
  throw badRequest('cursor: must be taken from the Link header of another page, rel="next"');
}
