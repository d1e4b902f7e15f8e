import type { Address } from "@coinslot/protocol";
import { DatabaseError } from "@coinslot/storage";
import type { Transaction, Updateable } from "kysely";
import type { LedgerSchema, PaymentsTable } from "../schema.ts";
import type { LedgerPayment } from "./ledger-payment.ts";
import type { ReservationRow } from "./reservation-row.ts";
import type { ReserveRequest } from "./reserve-request.ts";

/** The order of a payment that is watched because it has failed; `undefined` for any other. */
export async function findExecutableOrder(
  transaction: Transaction<LedgerSchema>,
  payment: LedgerPayment,
): Promise<{ pay_to: Address } | undefined> {
  if (!isStillExecutable(payment)) return undefined;
  return transaction
    .selectFrom("orders")
    .select("pay_to")
    .where("payment_id", "=", payment.id)
    .executeTakeFirst();
}

/**
 * Returns whether it has failed before, and any sender may still execute it. A reservation of it
 * keeps the reason of that failure until a block or a refusal gives another.
 */
function isStillExecutable({ state, reason, closedAt }: LedgerPayment): boolean {
  return (
    (state === "failed" || state === "reserved") && reason !== undefined && closedAt === undefined
  );
}

/**
 * A payer may sign two authorizations with one nonce. While the first is watched, the second would
 * take its place in the row. An execution of one could then be taken for the other's payment.
 */
export function isSameAuthorization(options: {
  request: ReserveRequest;
  payment: LedgerPayment;
  order: { pay_to: Address };
}): boolean {
  const { request, payment, order } = options;
  return (
    request.value === payment.value &&
    request.validBefore === payment.validBefore &&
    request.payTo === order.pay_to
  );
}

export interface ReserveAgainOptions {
  transaction: Transaction<LedgerSchema>;
  /** The payment before this reservation. */
  payment: LedgerPayment;
  /** The token in its row, as it was read. */
  token: string | null;
  row: ReservationRow;
}

/** As if it had never been seen. */
export async function reserveAnew(options: ReserveAgainOptions): Promise<void> {
  const { transaction, payment, row } = options;
  await overwrite(options, { ...row, reason: null });
  await transaction.deleteFrom("orders").where("payment_id", "=", payment.id).execute();
}

/**
 * Its order, its reason, its number of attempts and its share of gas stay. So does what was sold,
 * where the request does not name it. Given up, it is `failed` and watched again.
 */
export async function reserveStillExecutable(options: ReserveAgainOptions): Promise<void> {
  const { payment, row } = options;
  const { carried: _, gas_share: __, unused_at_block, ...rest } = row;
  const { wire, route_id, resource_id, ...fresh } = rest;
  await overwrite(options, {
    ...fresh,
    ...(wire === null ? {} : { wire, route_id, resource_id }),
    unused_at_block: unused_at_block ?? payment.unusedAtBlock ?? null,
  });
}

/**
 * Writes the row, unless it is another one than was read. Its owner may have been frozen, woken up
 * and queued it. Then the whole decision is undone, and made again by the writer.
 */
async function overwrite(
  { transaction, payment, token }: ReserveAgainOptions,
  row: Updateable<PaymentsTable>,
): Promise<void> {
  const { id: _, created_at: __, ...fresh } = row;
  const { numUpdatedRows } = await transaction
    .updateTable("payments")
    .set({
      ...fresh,
      transaction_id: null,
      block_number: null,
      block_hash: null,
      transaction_hash: null,
      submitted_at: null,
      delivered_at: null,
      closed_at: null,
      // The promise of this sale, and not that of another route which the same authorization paid.
      refund_after: row.refund_after ?? null,
      refunds_abandoned: row.refunds_abandoned ?? null,
    })
    .where("id", "=", payment.id)
    .where("state", "=", payment.state)
    .where("refund_started_at", "is", null)
    .where("token", token === null ? "is" : "=", token)
    .executeTakeFirst();
  if (numUpdatedRows === 0n) {
    throw new DatabaseError("busy", "A payment changed while it was reserved again");
  }
  await transaction.deleteFrom("answers").where("payment_id", "=", payment.id).execute();
}
