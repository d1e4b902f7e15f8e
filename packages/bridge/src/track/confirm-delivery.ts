import { type Address, isAddressEqual, type PublicClient, parseEventLogs } from "viem";
import { oftAbi } from "../chains/oft-abi.ts";
import { type ChainNode, hasWitnesses } from "../chains/witnesses.ts";
import type { Delivery } from "./find-delivery.ts";
import { readReceipt } from "./read-receipt.ts";

/**
 * Returns whether nodes of two hosts have a delivery, deep enough. A delivery ends a transfer, and
 * the next top-up sends another. One node alone is believed only where there is no other.
 */
export async function isConfirmed(
  nodes: readonly ChainNode[],
  expected: { delivery: Delivery; contract: Address; guid: string; confirmations: number },
): Promise<boolean> {
  if (!hasWitnesses(nodes)) return true;
  const answers = await Promise.all(
    nodes.map(async ({ operator, client }) =>
      (await hasDelivery(client, expected)) ? [operator] : [],
    ),
  );
  return new Set(answers.flat()).size > 1;
}

/** A node that fails, is behind, or has it in another block, is no witness. */
async function hasDelivery(
  client: PublicClient,
  expected: { delivery: Delivery; contract: Address; guid: string; confirmations: number },
): Promise<boolean> {
  const { delivery, contract, guid, confirmations } = expected;
  try {
    const [receipt, head] = await Promise.all([
      readReceipt(client, delivery.targetHash),
      client.getBlockNumber({ cacheTime: 0 }),
    ]);
    if (receipt === undefined || receipt.status === "reverted") return false;
    if (receipt.blockNumber !== delivery.targetBlock) return false;
    if (head - receipt.blockNumber + 1n < BigInt(confirmations)) return false;
    const logs = parseEventLogs({ abi: oftAbi, eventName: "OFTReceived", logs: receipt.logs });
    return logs.some((log) => isAddressEqual(log.address, contract) && log.args.guid === guid);
  } catch {
    return false;
  }
}
