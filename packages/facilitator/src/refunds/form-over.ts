import { blockByNumber, parseBlockHeader } from "@coinslot/chain";
import { readBlockTime } from "../ledger/queries/common-time.ts";
import type { RefundRow } from "../ledger/refunds/refund-row.ts";
import type { NetworkSettlement } from "../settle/engine.ts";
import type { RefundsContext } from "./refunds-context.ts";

/**
 * True if the last authorization of a refund is over at depth: a final block is past its
 * `validBefore`. Where its nonce is unused at the head as well, no block ever executes it.
 *
 * @throws RpcError when the chain is unreachable
 */
export async function isFormOver(
  { context }: Pick<RefundsContext, "context">,
  { network }: Pick<NetworkSettlement, "network">,
  row: RefundRow,
): Promise<boolean> {
  if (row.valid_before === null) return true;
  const validBefore = context.ledger.dialect.amount.decode(row.valid_before);
  const head = await network.watcher.read(0);
  const height = head.number - BigInt(network.finalAfter);
  if (height < 0n) return false;
  const header = parseBlockHeader(await network.rpc.request(blockByNumber(height)));
  return header !== undefined && validBefore <= (await readBlockTime(context.ledger, header));
}
