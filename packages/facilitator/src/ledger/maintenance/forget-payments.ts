import type { Transaction } from "kysely";
import type { LedgerContext } from "../ledger-context.ts";
import type { LedgerSchema } from "../schema.ts";
import { is } from "../states.ts";

/** Progress of a walk over the oldest rows. */
export interface ForgetProgress {
  /** The ids after which it goes on. Empty: from the beginning. */
  afterPayment: string;
  afterTransaction: string;
}

/** Result of one step of the walk. */
export interface ForgetResult {
  payments: number;
  progress: ForgetProgress;
}

/**
 * Forgets the oldest payments that have ended, and the signed forms of final transactions. One step
 * of a walk in the order of their creation. It takes a few rows, so that no writer waits for it.
 *
 * A payment has ended when two conditions hold. The chain can do nothing for it any more: final,
 * closed, or past its `validBefore`. No buyer can be served for it: delivered, and its kept answer
 * gone. One that was settled and never delivered stays, for its buyer may still come. Transactions
 * keep their rows, for a nonce must not be used again.
 *
 * The racer is a caller that reserves a released payment once more: one of the two statements finds
 * the row.
 */
export function forgetPayments(
  ledger: LedgerContext,
  options: {
    progress: ForgetProgress;
    /** Unix milliseconds: rows created, or ended, later than this are kept. */
    before: number;
    /** Number of rows read. */
    limit: number;
  },
): Promise<ForgetResult> {
  return ledger.write((transaction) => forgetStep(ledger, transaction, options));
}

async function forgetStep(
  ledger: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  options: Parameters<typeof forgetPayments>[1],
): Promise<ForgetResult> {
  const { dialect } = ledger;
  const { progress, before, limit } = options;
  const nowSeconds = BigInt(Math.floor(ledger.now() / 1000));
  const { afterPayment, afterTransaction } = progress;
  // The first rows, old or not. Asked for old ones alone, a database goes through all others to
  // find none.
  const firstPayments = await transaction
    .selectFrom("payments")
    .select(["id", "created_at"])
    .where("id", ">", afterPayment)
    .orderBy("id")
    .limit(limit)
    .execute();
  const oldest = firstPayments.filter(isOld);
  const firstTransactions = await transaction
    .selectFrom("transactions")
    .select(["id", "created_at", "state"])
    .where("id", ">", afterTransaction)
    .orderBy("id")
    .limit(limit)
    .execute();
  const transactions = firstTransactions.filter(isOld);
  const gone = await deleteEnded();
  await deleteOf("orders", "payment_id", gone);
  // A final row stays final: no guard is needed.
  const final = transactions.filter(({ state }) => state === "final").map(({ id }) => id);
  await deleteOf("broadcasts", "transaction_id", final);
  return {
    payments: gone.length,
    progress: {
      afterPayment: lastOf(oldest, limit),
      afterTransaction: lastOf(transactions, limit),
    },
  };

  function isOld({ created_at }: { created_at: number }): boolean {
    return created_at < before;
  }

  async function deleteEnded(): Promise<string[]> {
    if (oldest.length === 0) return [];
    const rows = await transaction
      .deleteFrom("payments")
      .where("id", "in", dialect.among(oldest.map(({ id }) => id)))
      .where("valid_before", "<=", dialect.amount.encode(nowSeconds))
      .where((where) =>
        where.or([
          where.and([
            where("state", "=", is("confirmed")),
            where("final_at", "<", before),
            where("delivered_at", "<", before),
          ]),
          where.and([where("state", "=", is("failed")), where("closed_at", "<", before)]),
          where("state", "in", [is("expired"), is("released")]),
        ]),
      )
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom("answers")
              .select("answers.payment_id")
              .whereRef("answers.payment_id", "=", "payments.id"),
          ),
        ),
      )
      .returning("id")
      .execute();
    return rows.map(({ id }) => id);
  }

  async function deleteOf(table: "orders" | "broadcasts", column: string, ids: string[]) {
    if (ids.length === 0) return;
    const { ref } = transaction.dynamic;
    await transaction.deleteFrom(table).where(ref(column), "in", dialect.among(ids)).execute();
  }
}

/**
 * The last id of a full step. A step that is not full came to the end, or to young rows, and the
 * next one begins anew.
 */
function lastOf(rows: readonly { id: string }[], limit: number): string {
  return rows.length < limit ? "" : (rows.at(-1)?.id ?? "");
}
