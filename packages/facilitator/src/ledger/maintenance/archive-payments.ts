import type { Dialect } from "@coinslot/storage";
import { type ExpressionBuilder, type SqlBool, sql, type Transaction } from "kysely";
import { forProcess, type LedgerContext } from "../ledger-context.ts";
import { endedRefundStates } from "../refunds-schema.ts";
import type { LedgerSchema } from "../schema.ts";
import { is } from "../states.ts";
import { isSilenceDeath, selectAlive } from "./living-processes.ts";
import {
  nameColumns,
  namesOfKept,
  nextAfter,
  oldAmong,
  type WalkOptions,
  type WalkStep,
} from "./walk.ts";

export interface ArchiveOptions extends WalkOptions {
  /** Unix milliseconds: an authorization that is valid only before this time is over. */
  now: number;
  /**
   * Unix milliseconds: a payment that became final before this time, and was never delivered, has
   * ended too. One that a living process holds, or that its route has to give back, has not.
   * `undefined`: none has.
   */
  undeliveredBefore: number | undefined;
}

/**
 * Moves payments that have ended into `archived_payments`, without the parts that served their
 * requests. Deletes the signatures of the other final ones. One step of a walk in the order of
 * their creation.
 *
 * A payment has ended when two conditions hold. The chain can do nothing for it any more. It is
 * final or closed before `before`, or never queued, and past its `validBefore`. No buyer can be
 * served for it: delivered, and its kept answer gone. A request for an archived payment finds none,
 * as if it were unknown. Its authorization is refused as expired.
 *
 * The racers are a caller that reserves a released payment once more, and one that resumes an
 * undelivered payment. Another process that archives is the third. Rows that one of them has locked
 * are left to the next walk. It waits for the rows that this step has locked, and finds none of
 * those that were moved. A process that wakes after a freeze of days, and holds an answer, looks
 * for its token before it sends: it finds none, or its delivery is not recorded.
 */
export function archivePayments(ledger: LedgerContext, options: ArchiveOptions): Promise<WalkStep> {
  return ledger.write((transaction) => archiveStep(ledger, transaction, options), forProcess);
}

async function archiveStep(
  ledger: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  options: ArchiveOptions,
): Promise<WalkStep> {
  const { dialect } = ledger;
  const next = await transaction
    .selectFrom("payments")
    .select(["id", ...nameColumns])
    .where("id", ">", options.after)
    .orderBy("id")
    .limit(options.limit)
    .execute();
  const oldest = oldAmong(next, options);
  if (oldest.length === 0) return { ended: 0, after: undefined, keptNames: [] };
  const isSure = await isSilenceDeath(ledger, transaction);
  const conditions = conditionsOf(ledger, transaction, { ...options, isSure });
  const final = await transaction
    .selectFrom("payments")
    .select(["id", "pay_to_id"])
    .select((where) =>
      where.case().when(conditions.hasEnded(where)).then(1).else(0).end().as("has_ended"),
    )
    .where("id", "in", dialect.among(oldest.map(({ id }) => id)))
    .where((where) => where.or([conditions.isFinal(where), conditions.hasEnded(where)]))
    .orderBy("id")
    .$call(dialect.forUpdateSkipLocked)
    .execute();
  const ended = final.filter(({ has_ended }) => Number(has_ended) === 1);
  const idsOf = (rows: readonly { id: string }[]) => rows.map(({ id }) => id);
  const unnamed = final.filter(({ pay_to_id }) => pay_to_id === null);
  await nameRecipients({ transaction, dialect, ids: idsOf(unnamed), now: ledger.now() });
  await move({ transaction, dialect, ids: idsOf(ended) });
  if (final.length > 0) {
    await transaction
      .deleteFrom("orders")
      .where("payment_id", "in", dialect.among(idsOf(final)))
      .execute();
  }
  const keptNames = namesOfKept(oldest, ended);
  return { ended: ended.length, after: nextAfter(oldest, options), keptNames };
}

type Where = ExpressionBuilder<LedgerSchema, "payments">;

/** Conditions on the rows of a step. A row is checked again as it is locked. */
function conditionsOf(
  ledger: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  { before, now, undeliveredBefore, isSure }: ArchiveOptions & { isSure: boolean },
) {
  const { dialect } = ledger;
  const nowSeconds = dialect.amount.encode(BigInt(Math.floor(now / 1000)));
  const isFinal = (where: Where) =>
    where.and([where("state", "=", is("confirmed")), where("final_at", "<", before)]);
  const alive = isSure
    ? selectAlive(ledger, transaction)
    : transaction.selectFrom("processes").select("id");
  const isHeldByDead = (where: Where) => where("owner", "not in", alive);
  const isServed = (where: Where) =>
    undeliveredBefore === undefined
      ? where("delivered_at", "<", before)
      : where.or([
          where("delivered_at", "<", before),
          where.and([
            where("delivered_at", "is", null),
            where("final_at", "<", undeliveredBefore),
            where.or([where("token", "is", null), isHeldByDead(where)]),
            where.not(where.exists(promisedRefund(where))),
          ]),
        ]);
  const hasEnded = (where: Where) =>
    where.and([
      where("valid_before", "<=", nowSeconds),
      where.or([
        where.and([isFinal(where), isServed(where)]),
        where.and([where("state", "=", is("failed")), where("closed_at", "<", before)]),
        where("state", "in", [is("expired"), is("released")]),
      ]),
      where.not(where.exists(openRefunds(where))),
      where.not(
        where.exists(
          where
            .selectFrom("answers")
            .select("answers.payment_id")
            .whereRef("answers.payment_id", "=", "payments.id"),
        ),
      ),
    ]);
  return { isFinal, hasEnded };
}

/** A refund that its route has promised, and on which nothing is decided yet. */
function promisedRefund(where: Where) {
  return where
    .selectFrom("refundable_payments")
    .select("refundable_payments.payment_id")
    .whereRef("refundable_payments.payment_id", "=", "payments.id");
}

/** A refund that is not over needs its payment, and its operation. */
function openRefunds(where: Where) {
  return where
    .selectFrom("refunds")
    .select("refunds.id")
    .where(sql<SqlBool>`refunds.payment_id in (payments.id, payments.refund_of)`)
    .where("refunds.state", "not in", endedRefundStates);
}

interface Rows {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  ids: readonly string[];
}

/** Payments older than the dictionary have their recipient in their order alone. */
async function nameRecipients({ transaction, dialect, ids, now }: Rows & { now: number }) {
  if (ids.length === 0) return;
  const recipients = await transaction
    .selectFrom("orders")
    .select("pay_to")
    .distinct()
    .where("payment_id", "in", dialect.among(ids))
    .orderBy("pay_to")
    .execute();
  if (recipients.length === 0) return;
  await dialect.insertMany<LedgerSchema, "sold_names">(
    transaction,
    "sold_names",
    recipients.map(({ pay_to }) => ({ name: pay_to, used_at: now })),
    { keys: ["name"], replace: ["used_at"] },
  );
  await transaction
    .updateTable("payments")
    .set(({ selectFrom }) => ({
      pay_to_id: selectFrom("orders")
        .innerJoin("sold_names", "sold_names.name", "orders.pay_to")
        .select("sold_names.id")
        .whereRef("orders.payment_id", "=", "payments.id"),
    }))
    .where("id", "in", dialect.among(ids))
    .execute();
}

const sameColumns = [
  "id",
  "network",
  "value",
  "valid_before",
  "state",
  "scheme",
  "carried",
  "runs",
  "block_number",
  "reason",
  "created_at",
  "queued_at",
  "submitted_at",
  "confirmed_at",
  "final_at",
  "delivered_at",
  "closed_at",
  "wire",
  "gas_share",
  "refund_of",
  "refund_started_at",
  ...nameColumns,
] as const;

const hexColumns = [
  "asset",
  "authority",
  "payer",
  "nonce",
  "block_hash",
  "transaction_hash",
] as const;

async function move({ transaction, dialect, ids }: Rows): Promise<void> {
  if (ids.length === 0) return;
  await transaction
    .insertInto("archived_payments")
    .columns([...sameColumns, ...hexColumns])
    .expression(
      transaction
        .selectFrom("payments")
        .select(sameColumns)
        .select((row) => hexColumns.map((column) => dialect.fromHex(row.ref(column)).as(column)))
        .where("id", "in", dialect.among(ids)),
    )
    .execute();
  await transaction.deleteFrom("payments").where("id", "in", dialect.among(ids)).execute();
}
