import { readCommonTime } from "../../ledger/queries/common-time.ts";
import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import type { SettlementContext } from "../context.ts";

/**
 * The time, in Unix seconds, before which payments of the queue must be valid to be included in
 * time. Other processes may have sold them, so a clock that is ahead of the database's ends none.
 */
export async function readDeadline(
  { ledger, times, now }: Pick<SettlementContext, "ledger" | "times" | "now">,
  queue: readonly OrderedPayment[],
): Promise<bigint> {
  const deadlineAt = (ms: number) => BigInt(Math.ceil((ms + times.leadMs) / 1000));
  const own = deadlineAt(now());
  const hasOverdue = queue.some(({ payment }) => payment.validBefore <= own);
  return hasOverdue ? deadlineAt(await readCommonTime(ledger)) : own;
}
