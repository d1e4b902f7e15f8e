import { type Selectable, type SqlBool, sql } from "kysely";
import { bytesToHex } from "viem";
import { forProcess, type LedgerContext } from "../ledger-context.ts";
import { findLost } from "../queries/find-lost.ts";
import { endedRefundStates } from "../refunds-schema.ts";
import type { ArchivedPaymentsTable } from "../schema.ts";
import { is } from "../states.ts";
import { type ClosedSource, type Closing, closeEntriesOf, lockSums } from "./close-entries.ts";
import {
  nameColumns,
  namesOfKept,
  nextAfter,
  oldAmong,
  type WalkOptions,
  type WalkStep,
} from "./walk.ts";

/**
 * Deletes archived payments that ended before `before`, and closes their entries of the books into
 * sums. One step of a walk in the order of their creation. A payment that does not agree with its
 * entries stays. So does one from before the books that is not posted yet.
 */
export function forgetPayments(
  { write, dialect }: LedgerContext,
  options: WalkOptions,
): Promise<WalkStep> {
  return write(async (transaction) => {
    const closing = { transaction, dialect };
    await lockSums(closing);
    const next = await transaction
      .selectFrom("archived_payments")
      .select(["id", ...nameColumns])
      .where("id", ">", options.after)
      .orderBy("id")
      .limit(options.limit)
      .execute();
    const oldest = oldAmong(next, options);
    if (oldest.length === 0) return { ended: 0, after: undefined, keptNames: [] };
    const idsOf = (rows: readonly { id: string }[]) => rows.map(({ id }) => id);
    const ended = await selectEnded(closing, { before: options.before, ids: idsOf(oldest) });
    const closed = await closeEntriesOf(closing, await selectSources(closing, ended));
    const gone = ended.filter(({ id }) => closed.has(id));
    await deletePayments(closing, idsOf(gone));
    return {
      ended: gone.length,
      after: nextAfter(oldest, options),
      keptNames: namesOfKept(oldest, gone),
    };
  }, forProcess);
}

type EndedPayment = Pick<
  Selectable<ArchivedPaymentsTable>,
  "id" | "state" | "refund_of" | "value" | "network" | "asset" | "route_id" | "closed_at"
>;

/** Those that have ended, locked. */
async function selectEnded(
  { transaction, dialect }: Closing,
  { before, ids }: { before: number; ids: readonly string[] },
): Promise<EndedPayment[]> {
  const { posted_to, last_id } = await transaction
    .selectFrom("book_progress")
    .selectAll()
    .executeTakeFirstOrThrow();
  return transaction
    .selectFrom("archived_payments")
    .select(["id", "state", "refund_of", "value", "network", "asset", "route_id", "closed_at"])
    .where("id", "in", dialect.among(ids))
    .where((where) => where.or([where("id", "<=", posted_to), where("id", ">", last_id)]))
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
    .orderBy("id")
    .$call(dialect.forUpdateSkipLocked)
    .execute();
}

/** The payments, and those of their refunds that no payment of the engine has made. */
async function selectSources(
  { transaction, dialect }: Closing,
  ended: readonly EndedPayment[],
): Promise<ClosedSource[]> {
  if (ended.length === 0) return [];
  const lost = await findLost({ db: transaction, dialect }, ended);
  const payments = ended.map(({ id, state, refund_of, value, network, asset, route_id }) => ({
    id,
    owner: id,
    isPaid: state === "confirmed",
    isLost: lost.has(id),
    isRefund: refund_of !== null,
    value: dialect.amount.decode(value),
    network,
    asset: bytesToHex(asset),
    route_id,
  }));
  const refunds = await transaction
    .selectFrom("refunds")
    .select(["id", "payment_id", "state", "operation_id", "amount", "network", "asset"])
    .where("payment_id", "in", dialect.among(ended.map(({ id }) => id)))
    .execute();
  return [
    ...payments,
    ...refunds.map(({ id, payment_id, state, operation_id, amount, network, asset }) => ({
      id,
      owner: payment_id,
      isPaid: state === "final" && operation_id === null,
      isRefund: true,
      value: dialect.amount.decode(amount),
      network,
      asset,
      route_id: null,
    })),
  ];
}

async function deletePayments(
  { transaction, dialect }: Closing,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return;
  await transaction.deleteFrom("archived_payments").where("id", "in", dialect.among(ids)).execute();
  // With their payment, and never before it: their sum bounds what may still be given back.
  await transaction.deleteFrom("refunds").where("payment_id", "in", dialect.among(ids)).execute();
  await transaction
    .deleteFrom("deep_reversals")
    .where("payment_id", "in", dialect.among(ids))
    .execute();
}
