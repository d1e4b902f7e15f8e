import type { Address } from "@coinslot/protocol";
import type { RefundRow } from "../ledger/refunds/refund-row.ts";
import type { NetworkSettlement } from "../settle/engine.ts";
import { askEach, type Vote } from "./is-confirmed.ts";
import { isOver } from "./is-over.ts";
import { readUses } from "./read-chain.ts";

/**
 * Whether every endpoint that answers shows a refund's nonce as used by an account. A refund that
 * ends is followed no more. So one node's receipt does not end it: its payer would never be paid.
 * The newest state is asked: a node may have pruned that of a final block.
 *
 * An endpoint decides once the block is final for it. The block may be made up, far above the
 * chain. So it also decides once the last form is over at depth.
 *
 * @param options `validBefore`: end of the last form, in Unix seconds, where that is known
 */
export function findUse(
  settlement: NetworkSettlement,
  row: RefundRow,
  options: { account: Address; blockNumber: number; validBefore: bigint | undefined },
): Promise<Vote> {
  const { account, blockNumber, validBefore } = options;
  const { finalAfter } = settlement.network;
  const { ledger } = settlement.context;
  return askEach(settlement, { kind: "use", of: row.id }, async (endpoint, head) => {
    const { usedBy, isUnreadable } = await readUses(endpoint, row, {
      accounts: [account],
      blockNumber: head.number,
    });
    if (isUnreadable) return undefined;
    const height = head.number - BigInt(finalAfter);
    const isDecided =
      height >= BigInt(blockNumber) ||
      (validBefore !== undefined && (await isOver(ledger, { endpoint, height, validBefore })));
    return isDecided ? usedBy.length > 0 : "behind";
  });
}
