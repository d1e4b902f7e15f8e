import type { Dialect, StoredAmount } from "@coinslot/storage";
import { hexOfBytes } from "../store/bytes.ts";
import type { KnownToken } from "../store/known-token.ts";
import { blockOfPosition, logOfPosition } from "../store/position.ts";
import type { Transfer } from "../transfer.ts";

/** The columns of a stored transfer with its block's. */
export interface TransferRow {
  position: number;
  transaction_index: number;
  transfer_index: number;
  transaction_hash: Uint8Array;
  from_address: Uint8Array;
  to_address: Uint8Array;
  amount: StoredAmount;
  block_hash: Uint8Array;
  timestamp_ms: number;
}

export function readTransfer(
  row: TransferRow,
  { token, dialect }: { token: KnownToken; dialect: Dialect },
): Transfer {
  return {
    blockchain: token.blockchain,
    token: token.token,
    blockNumber: blockOfPosition(row.position),
    blockHash: hexOfBytes(row.block_hash),
    timestamp: row.timestamp_ms,
    transactionHash: hexOfBytes(row.transaction_hash),
    transactionIndex: row.transaction_index,
    logIndex: logOfPosition(row.position),
    transferIndex: row.transfer_index,
    from: hexOfBytes(row.from_address),
    to: hexOfBytes(row.to_address),
    amount: dialect.amount.decode(row.amount),
  };
}
