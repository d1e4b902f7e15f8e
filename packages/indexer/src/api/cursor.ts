import { badRequest } from "./api-error.ts";

/** The place of a transfer in its chain: what pages and streams go on from. */
export interface TransferPlace {
  blockNumber: number;
  logIndex: number;
}

/** Writes a place as text for URLs and event ids. */
export function encodeCursor({ blockNumber, logIndex }: TransferPlace): string {
  return `${blockNumber}-${logIndex}`;
}

/** @throws ApiError 400 on anything that `encodeCursor` does not write */
export function decodeCursor(cursor: string): TransferPlace {
  const [, blockNumber, logIndex] =
    /^(0|[1-9][0-9]{0,14})-(0|[1-9][0-9]{0,14})$/.exec(cursor) ?? [];
  if (blockNumber === undefined || logIndex === undefined) {
    throw badRequest('cursor: must be taken from the Link header of another page, rel="next"');
  }
  return { blockNumber: Number(blockNumber), logIndex: Number(logIndex) };
}
