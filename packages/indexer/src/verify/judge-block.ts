import type { ChainContext } from "../chain-context.ts";
import { type BlockReceipts, transfersAmong } from "../proof/read-receipts.ts";
import type { BlockHeader } from "../rpc/block-header.ts";
import type { KnownToken } from "../store/known-token.ts";
import { blockOfPosition } from "../store/position.ts";
import {
  createTransferBatch,
  type TransferBatch,
  type TransferInsert,
} from "../transfer-log/transfer-batch.ts";
import type { VerificationRange } from "./choose-range.ts";
import { findDifferingBlocks, findMistimedBlocks, includeAll } from "./compare-readings.ts";

/** A block whose stored transfers are not those of the chain, with those of the chain. */
export interface Difference {
  block: BlockHeader;
  truth: TransferBatch;
}

/** Verdict of a block's receipts on both readings of it. */
export interface JudgedBlock extends Difference {
  isAsStored: boolean;
  isAsRead: boolean;
  /** True if the receipts have the root of their block. */
  isProven: boolean;
  /**
   * True if the receipts may change the stored block. With the root of their block they may.
   * Without it they are one more reading, which may be cut. Then no known transfer may be missing
   * from them; or the logs are the same, on a chain whose receipts prove nothing. Where other
   * endpoints prove theirs, they may change the time alone: it is that of the header.
   */
  isDecided: boolean;
}

export function judgeBlock(
  { database, evidence, pool }: ChainContext,
  {
    tokens,
    chosen: { stored },
    batch,
    receipts: { header, logs, isProven },
  }: {
    tokens: readonly KnownToken[];
    chosen: Pick<VerificationRange, "stored">;
    batch: TransferBatch;
    receipts: BlockReceipts;
  },
): JudgedBlock {
  const { number, hash, timestampMs } = header;
  const place = { tokens, fromBlock: number, toBlock: number, blockHash: hash };
  const truth = createTransferBatch(transfersAmong(logs, tokens), place, database.dialect);
  for (const block of truth.blocks.values()) block.timestampMs = timestampMs;
  const only = { from: number, next: number + 1 };
  const isSame = findDifferingBlocks(stored, truth, only).length === 0;
  const isAsStored = isSame && findMistimedBlocks(stored, truth, only).length === 0;
  // Not by its time: some nodes put a wrong one into each of their logs.
  const isAsRead = findDifferingBlocks(batch, truth, only).length === 0;
  const isHere = ({ position }: TransferInsert) => blockOfPosition(position) === number;
  // All are the word of one endpoint: where others prove theirs, it changes nothing by that.
  const isProvable = evidence.receipts === "provable";
  const known = [...stored.rows, ...batch.rows].filter(isHere);
  const isAlone = pool.endpoints.length === 1;
  const isWhole = (isSame || !isProvable || isAlone) && includeAll(truth.rows, known);
  return {
    block: header,
    truth,
    isAsStored,
    isAsRead,
    isProven,
    isDecided: isProven || (isAsRead && !isProvable) || isWhole,
  };
}
