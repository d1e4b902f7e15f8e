import type { Address } from "@coinslot/protocol";
import type { RefundRow } from "../ledger/refunds/refund-row.ts";
import { isConfirmed } from "./is-confirmed.ts";
import { isOver } from "./is-over.ts";
import { readUses } from "./read-chain.ts";
import type { RefundsContext } from "./refunds-context.ts";

/**
 * True if accounts that may have signed a refund have not executed it, and cannot any more. Then
 * another one may sign. The token executes a nonce once for each account, so a node's false word
 * would pay twice: each endpoint that answers has to show the nonce as unused.
 *
 * The last form of the row's account has to be over at depth. A block that was final at that very
 * head is past its `validBefore`. A later head says nothing: the nonce may have been used between
 * the two. An endpoint that has not come there denies it, also one that is stuck. Where the chain
 * has stood still, a node that makes up blocks would decide alone.
 */
export async function isFreeOf(
  { context, settlements }: Pick<RefundsContext, "context" | "settlements">,
  { row, accounts }: { row: RefundRow; accounts: readonly Address[] },
): Promise<boolean> {
  if (accounts.length === 0) return true;
  const settlement = settlements.get(row.network);
  if (settlement === undefined) return false;
  const { finalAfter } = settlement.network;
  const { ledger } = context;
  const end = accounts.some((each) => each === row.float) ? row.valid_before : null;
  const validBefore = end === null ? undefined : ledger.dialect.amount.decode(end);
  return isConfirmed(settlement, { kind: "no use", of: row.id }, async (endpoint, head) => {
    const { usedBy, isUnreadable } = await readUses(endpoint, row, {
      accounts,
      blockNumber: head.number,
    });
    if (usedBy.length > 0) return false;
    if (isUnreadable) return undefined;
    const height = head.number - BigInt(finalAfter);
    return validBefore === undefined || isOver(ledger, { endpoint, height, validBefore });
  });
}
