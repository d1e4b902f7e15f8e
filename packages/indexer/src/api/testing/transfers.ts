import { type Address, type Hex, toHex } from "viem";
import type { IndexedTransfer } from "../../transfer.ts";

export const alice: Address = "0x90f79bf6eb2c4f870365e785982e1f101e93b906";
export const bob: Address = "0x15d34aaf54267db7d7c367839aaf71a00a2c6a65";
const hash = (number: number): Hex => toHex(number, { size: 32 });

/**
 * A transfer of 1,000,000 from alice to bob in block `blockNumber`, one second after the block
 * before.
 */
export function transferIn(
  blockNumber: number,
  changes: Partial<IndexedTransfer> = {},
): IndexedTransfer {
  const logIndex = changes.logIndex ?? 0;
  return {
    blockchain: "plasma",
    token: "usdt",
    blockNumber,
    blockHash: hash(blockNumber),
    timestamp: 1_700_000_000_000 + blockNumber * 1_000,
    transactionHash: hash(1_000_000 + blockNumber * 100 + logIndex),
    transactionIndex: 0,
    logIndex,
    transferIndex: 0,
    from: alice,
    to: bob,
    amount: 1_000_000n,
    confirmations: 3,
    finalized: true,
    ...changes,
  };
}
