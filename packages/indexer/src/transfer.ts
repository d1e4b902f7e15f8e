import type { Address, Hash } from "viem";

/** One ERC-20 `Transfer` event as served. Addresses and hashes are in lowercase. */
export interface Transfer {
  /** The chain's and the token's names in the configuration. */
  blockchain: string;
  token: string;
  blockNumber: number;
  blockHash: Hash;
  /** Time of the block, in milliseconds since 1970. */
  timestamp: number;
  transactionHash: Hash;
  transactionIndex: number;
  /** Place of the event in its block. */
  logIndex: number;
  /** Place among the transfers of the same token in the transaction. */
  transferIndex: number;
  /** The zero address where tokens were minted. */
  from: Address;
  /** The zero address where tokens were burnt. */
  to: Address;
  /** In the token's smallest unit. */
  amount: bigint;
}

/** A stored transfer with its finality. */
export interface IndexedTransfer extends Transfer {
  /** 1 in the newest block. */
  confirmations: number;
  /**
   * True if no reorganisation can take it away any more, and its block was read twice or proven.
   */
  finalized: boolean;
}

/** Names one token by the names in the configuration. */
export interface TokenName {
  blockchain: string;
  token: string;
}

/** A new event at the live end. `id` grows; a reader resumes after it. */
export type TransferEvent =
  | { id: number; type: "transfer"; transfer: Transfer }
  /** The block of a transfer that was announced is no longer part of the chain. */
  | { id: number; type: "retraction"; transfer: Transfer };
