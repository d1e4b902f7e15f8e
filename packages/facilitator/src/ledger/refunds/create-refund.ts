import { isDatabaseError } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";
import type { LedgerContext } from "../ledger-context.ts";
import { mayLive } from "../maintenance/living-processes.ts";
import type { LedgerSchema } from "../schema.ts";
import { createSortableId } from "../sortable-id.ts";
import { is } from "../states.ts";
import type { CreateRefund, Refund } from "./refund.ts";
import { RefundError } from "./refund-error.ts";
import { refundNonce } from "./refund-nonce.ts";
import {
  findRefundedPayment,
  findRefundsOf,
  type RefundedPayment,
  type RefundRow,
  sumOfRefunds,
  toRefund,
} from "./refund-row.ts";

/**
 * Begins a refund, in one database transaction. The payment's row is locked first. Then no other
 * refund of it begins, and no request takes it up: those that have read it before find the refund,
 * or their token gone.
 *
 * @throws RefundError with the reason against it. Nothing was written then.
 */
export async function createRefund(ledger: LedgerContext, request: CreateRefund): Promise<Refund> {
  checkRequest(request);
  const work = () =>
    ledger.write((transaction) => create(ledger, transaction, { ...request, origin: "operator" }));
  return toRefund(await retryOnce(work), ledger.dialect);
}

/**
 * Two callers with one key and two payments lock different rows: the unique index refuses the
 * second one. It finds the first one's refund then.
 */
async function retryOnce<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!isDatabaseError(error)) throw error;
    return work();
  }
}

/** A request with its origin, inside a transaction. */
export interface RefundWish extends CreateRefund {
  origin: "operator" | "undelivered";
}

/** Writes the next refund of a payment, and ends the payment's service. */
export async function create(
  ledger: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  wish: RefundWish,
): Promise<RefundRow> {
  const { dialect } = ledger;
  const reads = { db: transaction, dialect };
  const payment = await findRefundedPayment(reads, wish.payment, { lock: true });
  const known = await transaction
    .selectFrom("refunds")
    .selectAll()
    .where("idempotency_key", "=", wish.idempotencyKey)
    .executeTakeFirst();
  if (known !== undefined) return sameRefund(ledger, known, wish);
  if (payment === undefined) {
    throw new RefundError("unknown_payment", "The ledger has no payment with this id");
  }
  await requireRefundable(ledger, transaction, payment);
  const earlier = await findRefundsOf(reads, payment.id);
  const left = payment.value - sumOfRefunds(earlier, dialect);
  if (left <= 0n) throw new RefundError("nothing_left", "The payment is given back already");
  const amount = wish.amount ?? left;
  if (amount > left) {
    throw new RefundError(
      "exceeds_payment",
      `The refund of ${amount} exceeds the ${left} that are left of the payment's ${payment.value}`,
    );
  }
  const now = ledger.now();
  const { network, asset, payer } = payment.authorization;
  const n =
    (earlier.findLast((each) => each.state !== "void" || !isNumberUnused(each))?.n ?? 0) + 1;
  await freeNumber(transaction, payment, { earlier, n });
  const row = await transaction
    .insertInto("refunds")
    .values({
      id: createSortableId(now),
      payment_id: payment.id,
      n,
      network,
      asset,
      payer,
      nonce: refundNonce(payment.authorization, n),
      requested: wish.amount === undefined ? null : dialect.amount.encode(wish.amount),
      amount: dialect.amount.encode(amount),
      state: "scheduled",
      cause: null,
      origin: wish.origin,
      reason: wish.reason ?? null,
      idempotency_key: wish.idempotencyKey,
      float: null,
      valid_before: null,
      operation_id: null,
      transaction_hash: null,
      block_number: null,
      block_hash: null,
      created_at: now,
      next_at: now,
      approved_at: null,
      signed_at: null,
      confirmed_at: null,
      final_at: null,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
  await endService(transaction, payment, now);
  return row;
}

/** No form of it was signed or exported, and its nonce was not found used. */
export function isNumberUnused(
  row: Pick<RefundRow, "valid_before" | "operation_id" | "block_number">,
): boolean {
  return row.valid_before === null && row.operation_id === null && row.block_number === null;
}

/**
 * Gives the number of a refund that was never signed to the next one, and puts it behind all. A
 * ledger that is restored from before both begins with the lowest number. So it finds the nonce of
 * each refund that was paid meanwhile: one behind an unused number would be paid again.
 */
async function freeNumber(
  transaction: Transaction<LedgerSchema>,
  { authorization }: RefundedPayment,
  { earlier, n }: { earlier: readonly RefundRow[]; n: number },
): Promise<void> {
  const known = earlier.find((each) => each.n === n);
  const last = earlier.at(-1);
  if (known === undefined || last === undefined) return;
  await transaction
    .updateTable("refunds")
    .set({ n: last.n + 1, nonce: refundNonce(authorization, last.n + 1) })
    .where("id", "=", known.id)
    .execute();
}

/** @throws RefundError where the payment cannot be given back now */
async function requireRefundable(
  ledger: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  payment: RefundedPayment,
): Promise<void> {
  if (payment.refundOf !== null) {
    throw new RefundError("is_refund", "This is the operation of a refund, and no payment");
  }
  if (payment.state !== "confirmed") {
    throw new RefundError("not_settled", `The payment is ${payment.state}, and not settled`);
  }
  if (payment.token === null) return;
  const { owner } = payment;
  if (owner === ledger.processId || (await mayLive(ledger, transaction, owner ?? ""))) {
    throw new RefundError("in_use", "A request is being served with this payment; try again");
  }
}

/** Its token, which a dead process holds, and its kept answer end with it. */
async function endService(
  transaction: Transaction<LedgerSchema>,
  { id, isArchived }: RefundedPayment,
  now: number,
): Promise<void> {
  if (isArchived) {
    await transaction
      .updateTable("archived_payments")
      .set({ refund_started_at: sql<number>`coalesce(refund_started_at, ${now})` })
      .where("id", "=", id)
      .execute();
    return;
  }
  await transaction
    .updateTable("payments")
    .set({
      refund_started_at: sql<number>`coalesce(refund_started_at, ${now})`,
      // The previous release serves no delivered payment.
      delivered_at: sql<number>`coalesce(delivered_at, ${now})`,
      token: null,
      owner: null,
    })
    .where("id", "=", id)
    .where("state", "=", is("confirmed"))
    .execute();
  await transaction.deleteFrom("answers").where("payment_id", "=", id).execute();
}

function sameRefund({ dialect }: LedgerContext, known: RefundRow, wish: RefundWish): RefundRow {
  const requested = known.requested === null ? undefined : dialect.amount.decode(known.requested);
  const isSame =
    known.payment_id === wish.payment &&
    requested === wish.amount &&
    (known.reason ?? undefined) === wish.reason;
  if (isSame) return known;
  throw new RefundError(
    "key_conflict",
    `The idempotency key belongs to refund ${known.id}, with other arguments`,
  );
}

function checkRequest({ payment, amount, reason, idempotencyKey }: CreateRefund): void {
  const refuse = (message: string) => {
    throw new RefundError("invalid_request", message);
  };
  // PostgreSQL stores no text with a NUL.
  const isText = (text: unknown, pattern: RegExp) =>
    typeof text === "string" && pattern.test(text) && !text.includes("\0");
  if (!isText(payment, /./s)) refuse("payment must be the id of a payment");
  if (amount !== undefined && (typeof amount !== "bigint" || amount <= 0n)) {
    refuse("amount must be a bigint above zero, in the token's smallest unit");
  }
  if (reason !== undefined && !isText(reason, /^.{0,500}$/s)) {
    refuse("reason must be a text of at most 500 characters, without NUL");
  }
  if (!isText(idempotencyKey, /^.{1,128}$/s)) {
    refuse("idempotencyKey must be a text of 1 to 128 characters, without NUL");
  }
}
