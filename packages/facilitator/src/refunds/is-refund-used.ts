import { blockByNumber, parseBlockHeader } from "@coinslot/chain";
import type { Address } from "@coinslot/protocol";
import type { RefundRow } from "../ledger/refunds/refund-row.ts";
import type { NetworkSettlement } from "../settle/engine.ts";
import { isConfirmed } from "./is-confirmed.ts";
import { readUses } from "./read-chain.ts";

/**
 * True if every endpoint that answers shows a refund's nonce as used by an account, finally. A
 * refund that ends is followed no more. So one node's receipt, or event, does not end it: its payer
 * would never be paid. An endpoint that is behind the block, or lacks its state, says nothing.
 */
export function isRefundUsed(
  { network: { rpc, finalAfter } }: NetworkSettlement,
  row: RefundRow,
  { account, blockNumber }: { account: Address; blockNumber: number },
): Promise<boolean> {
  return isConfirmed(rpc, async (endpoint) => {
    const head = parseBlockHeader(await endpoint.request(blockByNumber("latest")));
    const final = (head?.number ?? 0n) - BigInt(finalAfter);
    if (final < BigInt(blockNumber)) return undefined;
    const { usedBy, isUnreadable } = await readUses(endpoint, row, {
      accounts: [account],
      blockNumber: final,
    });
    return isUnreadable ? undefined : usedBy.length > 0;
  });
}
