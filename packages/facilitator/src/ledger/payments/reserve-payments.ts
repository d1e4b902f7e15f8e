import { authorizationKey, maxHandlerRuns } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { Insertable, Transaction } from "kysely";
import { sendHeartbeat } from "../maintenance/processes.ts";
import { findAnswers } from "../queries/find-answers.ts";
import { findPayments, type HeldPayment } from "../queries/find-payments.ts";
import type { LedgerSchema, OrdersTable, PaymentsTable } from "../schema.ts";
import { availabilityOf } from "../transactions/canonical-blocks.ts";
import { type CodePayerLimits, readCodeAdmission } from "./admit-code.ts";
import { findCommitments } from "./committed-balance.ts";
import { createFreeRuns, type FreeRunLimit } from "./free-runs.ts";
import { findKeyOwners } from "./key-owners.ts";
import type { LedgerPayment } from "./ledger-payment.ts";
import { lockPayers } from "./lock-payers.ts";
import { type ReservationRow, reservationRow, reservedPayment } from "./reservation-row.ts";
import {
  findWatchedOrder,
  isSameAuthorization,
  reserveAnew,
  reserveWatched,
} from "./reserve-again.ts";
import type { ReserveRequest, ReserveResult } from "./reserve-request.ts";
import { findSoldNames, nameSoldItem, type SoldNames } from "./sold-names.ts";
import { insertOrders, orderRow } from "./transfer-order.ts";

/**
 * Handler runs at most for a buyer who has paid, each beyond `maxHandlerRuns` after the death of a
 * process. That process may have died before the handler began, and the money is the seller's
 * already.
 */
const maxRunsOfPaid = 2 * maxHandlerRuns;

export interface ReserveOptions {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  requests: readonly ReserveRequest[];
  /**
   * Open payments that were executed, or cancelled, before the balances of all requests were read.
   */
  spent?: readonly string[] | undefined;
  /** The process that makes the requests. */
  owner: string;
  /** Unix milliseconds. */
  now: number;
  /** Time after its last heartbeat for which a process counts as alive. */
  heartbeatLeaseMs: number;
  /** Time for which a key belongs to one payment. */
  keepAnswersMs: number;
  releaseLimit: FreeRunLimit;
  codePayers: CodePayerLimits;
  /** Ids of the names of sold things, as far as they are known. */
  soldNames: SoldNames;
}

/** The decisions, in the order of the requests. */
export interface Reservations {
  results: ReserveResult[];
  /** Ids of the names of sold things, to be cached once the transaction is committed. */
  soldNames: SoldNames;
}

/**
 * Decides many reservations in one database transaction: `released`, `failed`, `expired`, a dead
 * process's `reserved`, or no row → `reserved` (or `queued`, if the order comes with the request).
 *
 * The racers are two requests with one authorization, here or in another process. So are two
 * payments of one payer that together exceed its balance. The payers' rows are locked first, in one
 * order for every caller. Every increase of a payer's promises passes here, so a sum read under the
 * lock stays true until the commit. (Other writers only lower them.)
 */
export async function reservePayments(options: ReserveOptions): Promise<Reservations> {
  const { transaction, dialect, requests, now, heartbeatLeaseMs, keepAnswersMs } = options;
  const { spent = [] } = options;
  // Awake again after a freeze, it would count as dead until its next heartbeat. A caller in
  // between would be given the same authorization: two handlers would run for one payment.
  await sendHeartbeat({
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
  const commitments = await findCommitments({ transaction, dialect, requests, spent });
  const limits = options.codePayers;
  const code = await readCodeAdmission({ transaction, dialect, requests, limits });

  const { releaseLimit: limit } = options;
  const freeRuns = createFreeRuns({ transaction, dialect, releases, commitments, now, limit });

  /** Rows of the admitted requests. New names are added for these alone. */
  const admitted: { request: ReserveRequest; row: ReservationRow }[] = [];
  const inserts: Insertable<PaymentsTable>[] = [];
  const overwrites: (() => Promise<void>)[] = [];
  const orders: Insertable<OrdersTable>[] = [];
  const results: ReserveResult[] = [];
  for (const request of requests) {
    results.push(await decide(request));
  }
  const sales = admitted.map(({ request }) => request);
  const soldNames = await findSoldNames({
    transaction,
    dialect,
    requests: sales,
    known: options.soldNames,
  });
  for (const { request, row } of admitted) nameSoldItem(row, request, soldNames);
  await dialect.insertMany<LedgerSchema, "payments">(transaction, "payments", inserts);
  for (const overwrite of overwrites) await overwrite();
  await insertOrders({ transaction, dialect, orders });
  await code.store();
  return { results, soldNames };

  async function decide(request: ReserveRequest): Promise<ReserveResult> {
    const key = authorizationKey(request.id);
    const found = known.get(key);
    const payment = found && withLostRun(found);
    const answer = answers.get(request);
    const keyOwner = request.keyHash && keyOwners.get(`${request.id.payer}/${request.keyHash}`);
    if (keyOwner && keyOwner !== key) return { outcome: "key_conflict" };
    const standing = availabilityOf(payment, found?.isHeld ?? false, request);
    if (standing === "key_conflict") return { outcome: "key_conflict" };
    if (payment !== undefined && standing !== "free") {
      if (standing === "in_use") return { outcome: "in_use", payment };
      if (standing === "delivered") return { outcome: "delivered", payment, answer };
      await takeUp(payment, request);
      known.set(key, { payment, isHeld: true, isAbandoned: false });
      const mayRun = payment.runs < (found?.isAbandoned ? maxRunsOfPaid : maxHandlerRuns);
      return { outcome: "resumed", payment, token: request.token, answer, mayRun };
    }
    const watched = payment && (await findWatchedOrder(transaction, payment));
    if (payment && watched && !isSameAuthorization({ request, payment, order: watched })) {
      return { outcome: "in_use", payment };
    }
    // A dead process's reservation of this very payment is part of that sum.
    const counted = payment?.state === "reserved" ? payment.value : 0n;
    if (!request.order) {
      if (payment && payment.runs >= maxHandlerRuns) return { outcome: "used_up" };
      const limit = await freeRuns.limitOf(request, { isCounted: counted > 0n });
      if (limit !== undefined) return { outcome: "payer_limited", ...limit };
    }
    if (!commitments.fits(request, counted)) return { outcome: "over_promised" };
    const limited = code.refuse(request, payment);
    if (limited) return limited;
    commitments.add(request, counted);
    const runs = payment?.runs ?? 0;
    const row = reservationRow({ request, dialect, owner: options.owner, now, runs });
    const paymentId = payment?.id ?? row.id;
    code.admitted(request, paymentId, payment);
    admitted.push({ request, row });
    if (payment === undefined) inserts.push(row);
    else if (watched === undefined)
      overwrites.push(() => reserveAnew({ transaction, payment, row }));
    else overwrites.push(() => reserveWatched({ transaction, payment, row }));
    if (request.order) orders.push(orderRow(paymentId, request.order, dialect));
    if (request.keyHash) keyOwners.set(`${request.id.payer}/${request.keyHash}`, key);
    known.set(key, {
      payment: reservedPayment({ request, runs, paymentId, now }),
      isHeld: true,
      isAbandoned: false,
    });
    return {
      outcome: "reserved",
      paymentId,
      token: request.token,
      carried: watched ? payment.carried : row.carried,
      unusedAtBlock: row.unused_at_block ?? (watched && payment.unusedAtBlock),
    };
  }

  async function takeUp(payment: LedgerPayment, request: ReserveRequest): Promise<void> {
    await transaction
      .updateTable("payments")
      .set({ token: request.token, owner: options.owner, runs: payment.runs })
      .where("id", "=", payment.id)
      .execute();
  }
}

/**
 * The payment, with the run that a dead process may have made under its token: no row records
 * whether it did.
 */
function withLostRun({ payment, isAbandoned }: HeldPayment): LedgerPayment {
  return isAbandoned ? { ...payment, runs: payment.runs + 1 } : payment;
}
