import { recordOutcomes } from "../ledger/payments/record-outcomes.ts";
import { findOrders } from "../ledger/queries/find-orders.ts";
import type { NetworkSettlement } from "../settle/engine.ts";
import { findExecutions } from "../settle/evidence/find-executions.ts";

/**
 * Confirms a failed operation whose nonce is used, by its transfer. The watch over failed payments
 * does not search a block twice, until their time is over. A node may have hidden the transfer.
 *
 * The racer is that watch, here or in another process: the outcome is recorded once.
 *
 * @param options `head`: block up to which the transfer is looked for
 * @throws RpcError, ZodError where the logs cannot be read
 */
export async function confirmFailed(
  { network, context }: NetworkSettlement,
  { operation, head }: { operation: string; head: bigint },
): Promise<void> {
  const { ledger, notifier } = context;
  const { rpc, finalAfter, serveAfter } = network;
  const payments = await findOrders(ledger, (query) => query.where("id", "=", operation));
  const found = await findExecutions({ rpc, payments, toBlock: head, finalAfter });
  for (const [{ payment }, execution] of found) {
    if (execution.outcome !== "executed") continue;
    const { inclusion } = execution;
    if (Number(head) - inclusion.blockNumber < serveAfter(payment)) continue;
    const confirmed = { ids: [payment.id], inclusion };
    notifier.publish(await recordOutcomes(ledger, [{ confirmed }]));
  }
}
