import type { Address } from "@coinslot/protocol";
import { topicOf } from "./topic-of.ts";
import type { ReceiptLog } from "./transaction-receipt.ts";

const transferTopic = topicOf("Transfer(address,address,uint256)");

/** Every `Transfer` of a token, by an authorization or not. */
export function readPlainTransfers(
  logs: readonly ReceiptLog[],
  asset: Address,
): { from: Address; to: Address; value: bigint }[] {
  return logs.flatMap(({ address, topics: [topic, from, to], data }) => {
    const isTransfer = address === asset && topic === transferTopic;
    if (!isTransfer || !from || !to || !/^0x[0-9a-f]{64}$/.test(data)) return [];
    const [sender, recipient] = [from, to].map((word): Address => `0x${word.slice(-40)}`);
    if (sender === undefined || recipient === undefined) return [];
    return { from: sender, to: recipient, value: BigInt(data) };
  });
}
