import {
  type Address,
  authorizationKey,
  type BalanceReading,
  type ReservationRequest,
  type SealedAnswer,
} from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { Insertable, Transaction, Updateable } from "kysely";
import { findAnswers } from "./find-answers.ts";
import { findPayments, type HeldPayment } from "./find-payments.ts";
import { findKeyOwners } from "./key-owners.ts";
import type { LedgerPayment } from "./ledger-payment.ts";
import type { LedgerSchema, OrdersTable, PaymentsTable } from "./ledger-schema.ts";
import { lockPayers } from "./lock-payers.ts";
import { beatHeart } from "./processes.ts";
import { findPromises } from "./promises.ts";
import { standingOf } from "./standing.ts";

/** What is to be executed: the rest of the authorization, with the signature as the token wants it. */
export interface Order {
  payTo: Address;
  validAfter: bigint;
  signature: `0x${string}`;
}

/** A wish to reserve, with what the ledger writes for it. */
export interface ReserveRequest extends ReservationRequest {
  value: bigint;
  validBefore: bigint;
  payTo: Address;
  balance?: BalanceReading | undefined;
  /** Identity of the row, if a new one is written. */
  paymentId: string;
  /** Becomes the secret of the reservation. */
  token: string;
  /** With an order the payment is queued at once: nobody runs a handler for it first. */
  order?: Order | undefined;
  /** It must not share a transaction with others. */
  isAlone?: boolean | undefined;
}

/** What became of the wish. */
export type ReserveResult =
  | { outcome: "reserved"; paymentId: string; token: string }
  | { outcome: "resumed"; payment: LedgerPayment; token: string; answer?: SealedAnswer | undefined }
  | { outcome: "in_use"; payment: LedgerPayment }
  | { outcome: "key_conflict" }
  | { outcome: "delivered"; payment: LedgerPayment; answer?: SealedAnswer | undefined }
  | { outcome: "over_promised" }
  | { outcome: "released_too_often" };

export interface ReserveOptions {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  requests: readonly ReserveRequest[];
  /** Open payments that were executed, or cancelled, before the balances of all requests were read. */
  spent?: readonly string[] | undefined;
  /** The process that asks. */
  owner: string;
  /** Unix milliseconds. */
  now: number;
  /** How long after its last heartbeat a process counts as alive. */
  heartbeatLeaseMs: number;
  /** How long a key belongs to one payment. */
  keepAnswersMs: number;
  releaseLimit: { count: number; windowMs: number };
}

/**
 * Decides many reservations in one database transaction: `released`, `failed`, `expired`, a dead
 * process's `reserved`, or no row → `reserved` (or `queued`, if the order comes with the wish).
 *
 * Racers are two requests with one authorization, or two payments of one payer that together exceed
 * its balance, here or in another process. The payers' rows are locked first, in one order for
 * everybody; whatever changes a payer's promises upwards passes here, so what is read under the
 * lock stays true until the commit. (Others only lower them.)
 */
export async function reservePayments(options: ReserveOptions): Promise<ReserveResult[]> {
  const { transaction, dialect, requests, now, heartbeatLeaseMs, keepAnswersMs } = options;
  const { spent = [] } = options;
  // Awake again after a freeze, it would count as dead until its heart beats, and whoever comes meanwhile
  // would be given the same authorization: two handlers would run for one payment.
  await beatHeart({
    db: transaction,
    dialect,
    processId: options.owner,
    freshMs: heartbeatLeaseMs / 2,
  });
  const payers = [...new Set(requests.map(({ id }) => id.payer))];
  const releases = await lockPayers({ transaction, dialect, payers, now });
  const known = await findPayments({
    db: transaction,
    dialect,
    ids: requests.map(({ id }) => id),
    heartbeatLeaseMs,
  });
  const keyOwners = await findKeyOwners({ db: transaction, requests, now, keepAnswersMs });
  const answers = await findAnswers({ db: transaction, requests, now });
  const promises = await findPromises({ transaction, dialect, requests, spent });

  const inserts: Insertable<PaymentsTable>[] = [];
  const orders: Insertable<OrdersTable>[] = [];
  const results: ReserveResult[] = [];
  for (const request of requests) {
    results.push(await decide(request));
  }
  await dialect.insertMany<LedgerSchema, "payments">(transaction, "payments", inserts);
  await insertOrders({ transaction, dialect, orders });
  return results;

  async function decide(request: ReserveRequest): Promise<ReserveResult> {
    const key = authorizationKey(request.id);
    const found = known.get(key);
    const payment = found?.payment;
    const answer = answers.get(request);
    const keyOwner = request.keyHash && keyOwners.get(`${request.id.payer}/${request.keyHash}`);
    if (keyOwner && keyOwner !== key) return { outcome: "key_conflict" };
    const standing = standingOf(payment, found?.isHeld ?? false, request);
    if (standing === "key_conflict") return { outcome: "key_conflict" };
    if (payment !== undefined && standing !== "free") {
      if (standing === "in_use") return { outcome: "in_use", payment };
      if (standing === "delivered") return { outcome: "delivered", payment, answer };
      await takeUp(payment, request);
      known.set(key, { payment, isHeld: true });
      return { outcome: "resumed", payment, token: request.token, answer };
    }
    const watched = payment && isWatched(payment) ? await findOrder(payment) : undefined;
    if (payment && watched && !isSameAuthorization({ request, payment, order: watched })) {
      return { outcome: "in_use", payment };
    }
    const released = releases.get(request.id.payer);
    if (released !== undefined && isTooMany(released)) return { outcome: "released_too_often" };
    // A dead process's reservation of this very payment is among what was summed.
    const counted = payment?.state === "reserved" ? payment.value : 0n;
    if (!promises.fits(request, counted)) return { outcome: "over_promised" };
    promises.add(request);
    const row = rowOf(request);
    if (payment === undefined) inserts.push(row);
    else if (watched === undefined) await reserveAnew(payment, row);
    else await reserveWatched(payment, row);
    if (request.order) orders.push(orderRow(payment?.id ?? row.id, request.order, dialect));
    if (request.keyHash) keyOwners.set(`${request.id.payer}/${request.keyHash}`, key);
    known.set(key, reservedNow(request, payment?.id ?? row.id));
    return { outcome: "reserved", paymentId: payment?.id ?? row.id, token: request.token };
  }

  function isTooMany({
    releases: count,
    window_started_at,
  }: {
    releases: number;
    window_started_at: number;
  }) {
    const { releaseLimit } = options;
    return now - window_started_at < releaseLimit.windowMs && count >= releaseLimit.count;
  }

  function rowOf(request: ReserveRequest) {
    const { id, order, balance } = request;
    return {
      id: request.paymentId,
      network: id.network,
      asset: id.asset,
      payer: id.payer,
      nonce: id.nonce,
      value: dialect.amount.encode(request.value),
      valid_before: dialect.amount.encode(request.validBefore),
      state: order ? ("queued" as const) : ("reserved" as const),
      fingerprint: request.fingerprint,
      key_hash: request.keyHash ?? null,
      token: request.token,
      owner: options.owner,
      unused_at_block: balance ? Number(balance.blockNumber) : null,
      carried: 0,
      is_alone: request.isAlone ? 1 : 0,
      created_at: now,
      queued_at: order ? now : null,
    };
  }

  async function takeUp(payment: LedgerPayment, request: ReserveRequest): Promise<void> {
    await transaction
      .updateTable("payments")
      .set({ token: request.token, owner: options.owner })
      .where("id", "=", payment.id)
      .execute();
  }

  /** As if it had never been seen. */
  async function reserveAnew(payment: LedgerPayment, row: PaymentRow): Promise<void> {
    await overwrite(payment, { ...row, reason: null });
    await transaction.deleteFrom("orders").where("payment_id", "=", payment.id).execute();
  }

  /** Its order, its reason and how often it was carried stay: given up, it is `failed` and watched again. */
  async function reserveWatched(payment: LedgerPayment, row: PaymentRow): Promise<void> {
    const { carried: _, unused_at_block, ...fresh } = row;
    await overwrite(payment, {
      ...fresh,
      unused_at_block: unused_at_block ?? payment.unusedAtBlock ?? null,
    });
  }

  async function overwrite(payment: LedgerPayment, row: Updateable<PaymentsTable>): Promise<void> {
    const { id: _, created_at: __, ...fresh } = row;
    await transaction
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
      })
      .where("id", "=", payment.id)
      .execute();
    await transaction.deleteFrom("answers").where("payment_id", "=", payment.id).execute();
  }

  async function findOrder({ id }: LedgerPayment): Promise<{ pay_to: Address } | undefined> {
    return transaction
      .selectFrom("orders")
      .select("pay_to")
      .where("payment_id", "=", id)
      .executeTakeFirst();
  }

  function reservedNow(request: ReserveRequest, paymentId: string): HeldPayment {
    return {
      isHeld: true,
      payment: {
        id: paymentId,
        authorization: request.id,
        value: request.value,
        validBefore: request.validBefore,
        state: request.order ? "queued" : "reserved",
        fingerprint: request.fingerprint,
        keyHash: request.keyHash,
        unusedAtBlock: request.balance && Number(request.balance.blockNumber),
        transactionId: undefined,
        carried: 0,
        isAlone: request.isAlone ?? false,
        inclusion: undefined,
        reason: undefined,
        createdAt: now,
        queuedAt: request.order && now,
        submittedAt: undefined,
        confirmedAt: undefined,
        finalAt: undefined,
        deliveredAt: undefined,
        closedAt: undefined,
      },
    };
  }
}

type PaymentRow = Insertable<PaymentsTable> & { carried: number; unused_at_block: number | null };

/**
 * Whether it has failed before, and may still be executed by anybody. A reservation of it keeps the
 * reason of that failure until a block or a refusal says something else.
 */
function isWatched({ state, reason, closedAt }: LedgerPayment): boolean {
  return (
    (state === "failed" || state === "reserved") && reason !== undefined && closedAt === undefined
  );
}

/**
 * A payer may sign two authorizations with one nonce. While the first is watched, the second would
 * take its place in the row, and what the chain then does could be taken for the other's payment.
 */
function isSameAuthorization(options: {
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

/** Writes what is to be executed; over what was to be, for a payment that has failed before. */
export async function insertOrders(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  orders: readonly Insertable<OrdersTable>[];
}): Promise<void> {
  const { transaction, dialect, orders } = options;
  await dialect.insertMany<LedgerSchema, "orders">(transaction, "orders", orders, {
    keys: ["payment_id"],
    replace: ["pay_to", "valid_after", "signature"],
  });
}

/** The row of `orders` for a payment. */
export function orderRow(
  paymentId: string,
  order: Order,
  dialect: Dialect,
): Insertable<OrdersTable> {
  return {
    payment_id: paymentId,
    pay_to: order.payTo,
    valid_after: dialect.amount.encode(order.validAfter),
    signature: order.signature,
  };
}
