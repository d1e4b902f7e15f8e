import { type SqlBool, sql } from "kysely";
import { forProcess, type LedgerContext } from "../ledger-context.ts";
import { endedRefundStates } from "../refunds-schema.ts";
import { is } from "../states.ts";
import {
  nameColumns,
  namesOfKept,
  nextAfter,
  oldAmong,
  type WalkOptions,
  type WalkStep,
} from "./walk.ts";

/**
 * Deletes archived payments that ended before `before`. One step of a walk in the order of their
 * creation.
 */
export function forgetPayments(
  { write, dialect }: LedgerContext,
  options: WalkOptions,
): Promise<WalkStep> {
  const { before } = options;
  return write(async (transaction) => {
    const next = await transaction
      .selectFrom("archived_payments")
      .select(["id", ...nameColumns])
      .where("id", ">", options.after)
      .orderBy("id")
      .limit(options.limit)
      .execute();
    const oldest = oldAmong(next, options);
    if (oldest.length === 0) return { ended: 0, after: undefined, keptNames: [] };
    const gone = await transaction
      .deleteFrom("archived_payments")
      .where("id", "in", dialect.among(oldest.map(({ id }) => id)))
      .where((where) =>
        where.or([
          where.and([
            where("state", "=", is("confirmed")),
            where("final_at", "<", before),
            where.or([where("delivered_at", "is", null), where("delivered_at", "<", before)]),
          ]),
          where.and([where("state", "=", is("failed")), where("closed_at", "<", before)]),
          where("state", "in", [is("expired"), is("released")]),
        ]),
      )
      .where((where) =>
        where.not(
          where.exists(
            where
              .selectFrom("refunds")
              .select("refunds.id")
              .where(
                sql<SqlBool>`refunds.payment_id in (archived_payments.id, archived_payments.refund_of)`,
              )
              .where("refunds.state", "not in", endedRefundStates),
          ),
        ),
      )
      .returning("id")
      .execute();
    // With their payment, and never before it: their sum bounds what may still be given back.
    if (gone.length > 0) {
      await transaction
        .deleteFrom("refunds")
        .where("payment_id", "in", dialect.among(gone.map(({ id }) => id)))
        .execute();
    }
    const keptNames = namesOfKept(oldest, gone);
    return { ended: gone.length, after: nextAfter(oldest, options), keptNames };
  }, forProcess);
}
