import type { RpcRequester } from "@coinslot/chain";
import type { Address, Hex } from "@coinslot/protocol";
import { createBlockTimes } from "./block-times.ts";
import {
  createTransferReader,
  readFinalBlock,
  readTransaction,
  type TransferLog,
  type Watched,
} from "./transfer-logs.ts";

/** A place to read the transfers of a chain from. */
export interface ChainSource {
  kind: "nodes" | "index";
  /** The last block that it has read; undefined: any block that the ledger knows. */
  lastBlock: number | undefined;
  /** The transfers of some blocks, part by part in their order; each with its last block. */
  readBlocks(
    range: { from: number; to: number },
    watched: Watched,
  ): AsyncGenerator<{ transfers: TransferLog[]; to: number }, void, void>;
  /** The newest final block. */
  readFinalBlock(): Promise<number>;
  /** The transfers of a token in a transaction; none where no block holds it. */
  readTransaction(of: { transaction: Hex; asset: Address }): Promise<TransferLog[]>;
  /** All topics in a transaction; undefined where the source does not know them. */
  readTopics(transaction: Hex): Promise<ReadonlySet<Hex> | undefined>;
  /** True if the block of a transfer is older than a time, in Unix milliseconds. */
  isBefore(transfer: TransferLog, time: number): Promise<boolean>;
}

/** The chain by its nodes. */
export function createNodeSource(rpc: RpcRequester, finalDepth: number): ChainSource {
  const blockTimes = createBlockTimes(rpc);
  return {
    kind: "nodes",
    lastBlock: undefined,
    readBlocks: createTransferReader(rpc),
    readFinalBlock: () => readFinalBlock(rpc, finalDepth),
    readTransaction: async ({ transaction }) => (await readTransaction(rpc, transaction)).transfers,
    readTopics: async (transaction) => (await readTransaction(rpc, transaction)).topics,
    isBefore: ({ blockNumber }, time) => blockTimes.isBefore(blockNumber, time),
  };
}
