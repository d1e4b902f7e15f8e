import type { RpcCall } from "@coinslot/chain";
import { transferTopic } from "../transfer-log/transfer-topic.ts";

/** Place of the logs: a range of blocks, both inclusive, or one block. */
export type LogsPlace = { fromBlock: number; toBlock: number } | { blockHash: string };

/** Requests the transfers of tokens. */
export function getTransferLogs(place: LogsPlace, addresses: readonly string[]): RpcCall {
  return getLogs(place, { address: addresses, topics: [transferTopic] });
}

export function getLogs(place: LogsPlace, filter: object): RpcCall {
  const where =
    "blockHash" in place
      ? place
      : { fromBlock: toQuantity(place.fromBlock), toBlock: toQuantity(place.toBlock) };
  return { method: "eth_getLogs", params: [{ ...where, ...filter }] };
}

export function toQuantity(value: number): string {
  return `0x${value.toString(16)}`;
}
