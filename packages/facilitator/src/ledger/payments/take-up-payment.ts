import type { Transaction } from "kysely";
import type { LedgerContext } from "../ledger-context.ts";
import type { HeldPayment } from "../queries/find-payments.ts";
import type { LedgerSchema } from "../schema.ts";
import type { ReserveRequest } from "./reserve-request.ts";

/**
 * Gives an open payment to a request. The racer is a frozen process that wakes up after its row was
 * read. It counts a run, or ends its request. The token is another one then, or `runs` is more.
 */
export async function takeUpPayment(
  { ledger, transaction }: { ledger: LedgerContext; transaction: Transaction<LedgerSchema> },
  { payment, token }: HeldPayment,
  request: ReserveRequest,
): Promise<boolean> {
  const { numUpdatedRows } = await transaction
    .updateTable("payments")
    .set({ token: request.token, owner: ledger.processId })
    .where("id", "=", payment.id)
    .where("token", token === null ? "is" : "=", token)
    .where("runs", "=", payment.runs)
    // A refund has begun since its row was read.
    .where("refund_started_at", "is", null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}
