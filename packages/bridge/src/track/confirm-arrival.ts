import { type Address, type Hex, isAddressEqual, type PublicClient, parseEventLogs } from "viem";
import { oftAbi } from "../chains/oft-abi.ts";
import { type ChainNode, isWitnessed } from "../chains/witnesses.ts";
import type { Delivery } from "./find-delivery.ts";
import { readReceipt } from "./read-receipt.ts";

/** A delivery as the first node has it. */
export interface ExpectedDelivery {
  delivery: Delivery;
  contract: Address;
  guid: Hex;
  confirmations: number;
}

/**
 * Returns whether nodes of two hosts have a delivery, deep enough. A delivery ends a transfer, and
 * the next top-up sends another. One node alone is believed only where there is no other.
 */
export function isArrived(
  nodes: readonly ChainNode[],
  expected: ExpectedDelivery,
): Promise<boolean> {
  return isWitnessed(nodes, (client) => hasDelivery(client, expected));
}

/** A node that is behind, or has it in another block, is no witness. */
async function hasDelivery(
  client: PublicClient,
  { delivery, contract, guid, confirmations }: ExpectedDelivery,
): Promise<boolean> {
  const [receipt, head] = await Promise.all([
    readReceipt(client, delivery.targetHash),
    client.getBlockNumber({ cacheTime: 0 }),
  ]);
  if (receipt === undefined || receipt.status === "reverted") return false;
  if (receipt.blockNumber !== delivery.targetBlock) return false;
  if (head - receipt.blockNumber + 1n < BigInt(confirmations)) return false;
  const logs = parseEventLogs({ abi: oftAbi, eventName: "OFTReceived", logs: receipt.logs });
  return logs.some(
    ({ address, args }) =>
      isAddressEqual(address, contract) &&
      args.guid === guid &&
      isAddressEqual(args.toAddress, delivery.recipient) &&
      args.amountReceivedLD === delivery.amountReceived,
  );
}
