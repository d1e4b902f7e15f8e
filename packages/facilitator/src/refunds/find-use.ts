import type { Address } from "@coinslot/protocol";
import type { RefundRow } from "../ledger/refunds/refund-row.ts";
import type { NetworkSettlement } from "../settle/engine.ts";
import { askEach, type Vote } from "./is-confirmed.ts";
import { readUses } from "./read-chain.ts";

/**
 * Whether every endpoint that answers shows a refund's nonce as used by an account. A refund that
 * ends is followed no more. So one node's receipt does not end it: its payer would never be paid.
 * Nothing is decided while the block is not final for one of them. The newest state is asked: a
 * node may have pruned that of a final block.
 */
export function findUse(
  settlement: NetworkSettlement,
  row: RefundRow,
  { account, blockNumber }: { account: Address; blockNumber: number },
): Promise<Vote> {
  const { finalAfter } = settlement.network;
  return askEach(settlement, { kind: "use", of: row.id }, async (endpoint, head) => {
    if (head.number < BigInt(blockNumber + finalAfter)) return "behind";
    const { usedBy, isUnreadable } = await readUses(endpoint, row, {
      accounts: [account],
      blockNumber: head.number,
    });
    return isUnreadable ? undefined : usedBy.length > 0;
  });
}
