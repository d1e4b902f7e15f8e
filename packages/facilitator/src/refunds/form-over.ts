import { blockByNumber, parseBlockHeader } from "@coinslot/chain";
import type { Address } from "@coinslot/protocol";
import { readBlockTime } from "../ledger/queries/common-time.ts";
import type { RefundRow } from "../ledger/refunds/refund-row.ts";
import type { NetworkSettlement } from "../settle/engine.ts";
import { type RefundReading, readRefund } from "./read-chain.ts";
import type { RefundsContext } from "./refunds-context.ts";

/**
 * True if the last authorization of a refund is over at depth: a block that was final at a reading
 * is past its `validBefore`. Where its nonce was unused at that reading, no block ever executes it.
 * A later head says nothing: the nonce may have been used between the two.
 *
 * @throws RpcError when the chain is unreachable
 */
export async function isFormOver(
  { context }: Pick<RefundsContext, "context">,
  { network }: Pick<NetworkSettlement, "network">,
  { row, reading }: { row: RefundRow; reading: Pick<RefundReading, "blockNumber"> },
): Promise<boolean> {
  if (row.valid_before === null) return true;
  const validBefore = context.ledger.dialect.amount.decode(row.valid_before);
  const height = reading.blockNumber - BigInt(network.finalAfter);
  if (height < 0n) return false;
  const header = parseBlockHeader(await network.rpc.request(blockByNumber(height)));
  return header !== undefined && validBefore <= (await readBlockTime(context.ledger, header));
}

/**
 * True if an account that may have signed a refund cannot execute it any more, and has not.
 *
 * @throws RpcError, ZodError when the chain cannot be read
 */
export async function isFreeOf(
  refunds: Pick<RefundsContext, "context" | "settlements">,
  { row, account }: { row: RefundRow; account: Address },
): Promise<boolean> {
  const settlement = refunds.settlements.get(row.network);
  if (settlement === undefined) return false;
  const value = refunds.context.ledger.dialect.amount.decode(row.amount);
  const asked = { accounts: [account], float: undefined, value };
  const reading = await readRefund(settlement.network, row, asked);
  if (reading.isUnreadable || reading.usedBy.length > 0) return false;
  return isFormOver(refunds, settlement, { row, reading });
}
