import type { Dialect } from "@coinslot/storage";
import type { Insertable } from "kysely";
import { bytesOfHex } from "../store/bytes.ts";
import type { KnownToken } from "../store/known-token.ts";
import { blockOfPosition } from "../store/position.ts";
import type { IndexerSchema } from "../store/schema.ts";
import { wrapUint256 } from "../store/wrap-uint256.ts";
import { decodeTransferLog, type TransferLog } from "./decode-transfer-log.ts";

export type TransferInsert = Insertable<IndexerSchema["indexer_transfers"]>;

export interface BatchBlock {
  hash: string;
  /** Undefined where the node did not put it into its logs; read from the header then. */
  timestampMs: number | undefined;
}

/** The transfers of some blocks, ready to be written. */
export interface TransferBatch {
  /** Rows in the order of their positions for each token. */
  readonly rows: readonly TransferInsert[];
  /** The blocks of the rows. */
  readonly blocks: Map<number, BatchBlock>;
  /** Gain of each address, modulo 2^256: token id, then the address as 40 hex digits. */
  readonly gains: ReadonlyMap<number, ReadonlyMap<string, bigint>>;
  /** The newest transfer, as the node returned it. */
  readonly last: TransferLog | undefined;
  /**
   * Logs that are no transfers, and that a token may have written so. None of them is among the
   * rows.
   */
  readonly oddities: readonly string[];
  /** Faults that no chain causes, with any tokens: the answer must not be used. */
  readonly faults: readonly string[];
}

/** The question behind the answers. */
export interface BatchQuestion {
  tokens: readonly KnownToken[];
  fromBlock: number;
  toBlock: number;
  /** Set where the question named one block by its hash. */
  blockHash?: string;
}

/**
 * Reads the answers to `eth_getLogs`. Logs that do not fit the question are left out. `oddities`
 * lists each `Transfer` of another form, for such tokens exist. `faults` lists the faults that only
 * a node can cause:
 *
 * - no list
 * - a log without its place
 * - a log of another address, event or block
 * - a log twice
 * - a log that a reorganisation removed
 * - one block with two hashes
 */
export function createTransferBatch(
  answer: unknown,
  { tokens, fromBlock, toBlock, blockHash }: BatchQuestion,
  { amount }: Pick<Dialect, "amount">,
): TransferBatch {
  const rows: TransferInsert[] = [];
  const blocks = new Map<number, BatchBlock>();
  const gains = new Map<number, Map<string, bigint>>();
  const oddities: string[] = [];
  const faults: string[] = [];
  const byAddress = new Map(tokens.map((token) => [token.address as string, token]));

  const logs: TransferLog[] = [];
  for (const value of Array.isArray(answer) ? answer : []) {
    const log = decodeTransferLog(value);
    if (!("problem" in log)) logs.push(log);
    else if (log.isPossible) oddities.push(log.problem);
    else faults.push(log.problem);
  }
  if (!Array.isArray(answer)) faults.push("no list of logs");
  if (!isAscending(logs)) logs.sort((a, b) => a.position - b.position);

  let previous: TransferLog | undefined;
  let last: TransferLog | undefined;
  const lastOfToken = new Map<number, { log: TransferLog; transferIndex: number }>();
  for (const log of logs) {
    const token = byAddress.get(log.address);
    const number = blockOfPosition(log.position);
    const block = blocks.get(number);
    if (token === undefined) faults.push(`a log of ${log.address}`);
    else if (number < fromBlock || number > toBlock) faults.push(`a log of block ${number}`);
    else if (log.position === previous?.position) faults.push("a log twice");
    else if (log.blockHash !== (block?.hash ?? blockHash ?? log.blockHash))
      faults.push(`block ${number} with another hash`);
    else if (number >= token.startBlock) add(token, log, number, block);
    previous = log;
  }

  function add(token: KnownToken, log: TransferLog, number: number, block: BatchBlock | undefined) {
    if (block === undefined)
      blocks.set(number, { hash: log.blockHash, timestampMs: log.timestampMs });
    const before = lastOfToken.get(token.id);
    const isSameTransaction =
      before?.log.transactionIndex === log.transactionIndex &&
      blockOfPosition(before.log.position) === number;
    const transferIndex = isSameTransaction ? before.transferIndex + 1 : 0;
    lastOfToken.set(token.id, { log, transferIndex });
    rows.push({
      token_id: token.id,
      position: log.position,
      transaction_index: log.transactionIndex,
      transfer_index: transferIndex,
      transaction_hash: bytesOfHex(log.transactionHash),
      from_address: Buffer.from(log.from, "hex"),
      to_address: Buffer.from(log.to, "hex"),
      amount: amount.encode(log.amount),
    });
    let ofToken = gains.get(token.id);
    if (ofToken === undefined) {
      ofToken = new Map();
      gains.set(token.id, ofToken);
    }
    // In this order a transfer to oneself comes out even.
    ofToken.set(log.from, wrapUint256((ofToken.get(log.from) ?? 0n) - log.amount));
    ofToken.set(log.to, wrapUint256((ofToken.get(log.to) ?? 0n) + log.amount));
    last = log;
  }

  return { rows, blocks, gains, last, oddities, faults };
}

function isAscending(logs: readonly TransferLog[]): boolean {
  for (let index = 1; index < logs.length; index++) {
    const [before, after] = [logs[index - 1], logs[index]];
    if (before !== undefined && after !== undefined && before.position > after.position) {
      return false;
    }
  }
  return true;
}
