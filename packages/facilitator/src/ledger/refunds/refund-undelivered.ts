import type { Address, Network } from "@coinslot/protocol";
import type { Transaction } from "kysely";
import type { LedgerContext } from "../ledger-context.ts";
import { lockPayers } from "../payments/lock-payers.ts";
import { dayMs, dayOf } from "../queries/created-range.ts";
import type { LedgerSchema } from "../schema.ts";
import { sortableIdAt } from "../sortable-id.ts";
import { create } from "./create-refund.ts";
import { RefundError } from "./refund-error.ts";
import type { RefundRow } from "./refund-row.ts";

/** Limits of the refunds that a route's policy makes. */
export interface AutomaticLimits {
  maxPerPayerPerDay: number;
  /** In the token's smallest unit: of all payers together, in a day (UTC). */
  automaticMaxPerDay(token: { network: Network; asset: Address }): bigint;
  /** In the token's smallest unit: a payment below twice as much is not given back. */
  gasCost: bigint;
}

/** A payment that waits for the next day: the refunds of this one have reached their sum. */
export interface LimitedPayment {
  payment: string;
  network: Network;
  asset: Address;
  maxPerDay: bigint;
}

/** Receives payments that are not given back now. */
export interface PolicyReports {
  /** The ledger cannot decide on it. */
  onFault?(fault: { err: unknown; payment: string }): void;
  onLimit?(limited: LimitedPayment): void;
}

const maxAtOnce = 50;
const maxDropped = 1_000;
/** A payment that is being served is looked at again. */
const servedMs = 60_000;
/** So is one on which the ledger cannot decide. */
const brokenMs = 600_000;

/**
 * Begins the refunds of payments that were settled, and not delivered in time. A payment on which
 * the ledger cannot decide is tried again later, and keeps no other one waiting.
 */
export async function refundUndelivered(
  ledger: LedgerContext,
  limits: AutomaticLimits,
  { onFault, onLimit }: PolicyReports = {},
): Promise<RefundRow[]> {
  while ((await dropDelivered(ledger)) === maxDropped);
  const due = await ledger.db
    .selectFrom("refundable_payments")
    .select("payment_id")
    .where("due_at", "<=", ledger.now())
    .orderBy("due_at")
    .limit(maxAtOnce)
    .execute();
  const begun: RefundRow[] = [];
  for (const { payment_id: id } of due) {
    try {
      const decided = await ledger.write((transaction) =>
        refundOne(ledger, transaction, { limits, id }),
      );
      if (decided === undefined) continue;
      if ("maxPerDay" in decided) onLimit?.(decided);
      else begun.push(decided);
    } catch (err) {
      onFault?.({ err, payment: id });
      await ledger.write((transaction) => postponeTo(transaction, id, ledger.now() + brokenMs));
    }
  }
  return begun;
}

/** Most payments of a route with a policy are delivered: many go with one statement. */
async function dropDelivered({ write, now }: LedgerContext): Promise<number> {
  const { numDeletedRows } = await write((transaction) =>
    transaction
      .deleteFrom("refundable_payments")
      .where("payment_id", "in", (select) =>
        select
          .selectFrom("refundable_payments as due")
          .innerJoin("payments", "payments.id", "due.payment_id")
          .select("due.payment_id")
          .where("due.due_at", "<=", now())
          .where("payments.delivered_at", "is not", null)
          .orderBy("due.due_at")
          .limit(maxDropped),
      )
      .executeTakeFirst(),
  );
  return Number(numDeletedRows);
}

async function postponeTo(
  transaction: Transaction<LedgerSchema>,
  id: string,
  dueAt: number,
): Promise<undefined> {
  await transaction
    .updateTable("refundable_payments")
    .set({ due_at: dueAt })
    .where("payment_id", "=", id)
    .execute();
}

/**
 * Decides on one payment, under the locks of its payer and of its row. A request that is being
 * served with it postpones the decision. A payment that leaves its block comes again by the
 * trigger.
 */
async function refundOne(
  ledger: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  { id, limits }: { id: string; limits: AutomaticLimits },
): Promise<RefundRow | LimitedPayment | undefined> {
  const { dialect } = ledger;
  const { maxPerPayerPerDay, gasCost } = limits;
  const now = ledger.now();
  const found = await transaction
    .selectFrom("payments")
    .select("payer")
    .where("id", "=", id)
    .executeTakeFirst();
  if (found === undefined) return drop();
  const { payer } = found;
  await lockPayers({ transaction, dialect, payers: [payer], now });
  const payment = await transaction
    .selectFrom("payments")
    .select(["state", "delivered_at", "is_abandoned", "refunds_abandoned", "refund_after"])
    .select(["value", "queued_at", "confirmed_at", "network", "asset"])
    .where("id", "=", id)
    .$call(dialect.forUpdate)
    .executeTakeFirst();
  if (payment?.state !== "confirmed" || payment.delivered_at !== null) return drop();
  if (payment.is_abandoned === 1 && payment.refunds_abandoned !== 1) return drop();
  if (dialect.amount.decode(payment.value) < 2n * gasCost) return drop();
  // The row has the time of its first reservation, which may not have been that of its sale. The
  // clock of one of the two may have been behind. A time of far ahead: this clock is wrong, or its
  // own was. Without another, the row's `due_at` alone decides.
  const soldAt = [payment.queued_at, payment.confirmed_at].reduce<number>(
    (last, at) => (at !== null && at <= now + dayMs ? Math.max(last, at) : last),
    0,
  );
  const dueAt = soldAt + (payment.refund_after ?? 0) * 1000;
  if (dueAt > now) return postpone(dueAt);
  const day = dayOf(now);
  const { count } = await transaction
    .selectFrom("refunds")
    .select(({ fn }) => fn.countAll().as("count"))
    .where("payer", "=", payer)
    .where("created_at", ">=", day.from)
    .where("created_at", "<", day.before)
    .where("origin", "=", "undelivered")
    .executeTakeFirstOrThrow();
  if (Number(count) >= maxPerPayerPerDay) {
    return postpone(day.before);
  }
  const { network, asset } = payment;
  const maxPerDay = limits.automaticMaxPerDay({ network, asset });
  const given = await sumOfDay(ledger, transaction, { network, asset });
  if (given + dialect.amount.decode(payment.value) > maxPerDay) {
    await postpone(day.before);
    return { payment: id, network, asset, maxPerDay };
  }
  try {
    const row = await create(ledger, transaction, {
      payment: id,
      origin: "undelivered",
      idempotencyKey: `undelivered:${id}`,
    });
    await drop();
    return row;
  } catch (error) {
    // Its reasons come before its writes.
    if (!(error instanceof RefundError)) throw error;
    return error.reason === "in_use" ? postpone(now + servedMs) : drop();
  }

  async function drop(): Promise<undefined> {
    await transaction.deleteFrom("refundable_payments").where("payment_id", "=", id).execute();
  }
  function postpone(dueAt: number): Promise<undefined> {
    return postponeTo(transaction, id, dueAt);
  }
}

/**
 * Sum of the day's automatic refunds of a token. A second process may take the worker's lease while
 * a transaction of the first is still open. It waits for its end.
 */
async function sumOfDay(
  { dialect, now }: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  { network, asset }: { network: Network; asset: Address },
): Promise<bigint> {
  await dialect.lockKey(transaction, `coinslot:automatic-refunds:${network}:${asset}`);
  // Ids begin with the time of their creation: the primary key finds the day.
  const day = dayOf(now());
  const { sum } = await transaction
    .selectFrom("refunds")
    .select((row) => dialect.amount.sum(row.ref("amount")).as("sum"))
    .where("id", ">=", sortableIdAt(day.from))
    .where("id", "<", sortableIdAt(day.before))
    .where("origin", "=", "undelivered")
    .where("network", "=", network)
    .where("asset", "=", asset)
    .where("state", "!=", "void")
    .executeTakeFirstOrThrow();
  return dialect.amount.decode(sum);
}
