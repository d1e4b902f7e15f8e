import { randomUUID } from "node:crypto";
import { authorizationKey, maxHandlerRuns, type SealedAnswer } from "@coinslot/protocol";
import { isDatabaseError } from "@coinslot/storage";
import type { Insertable, Transaction } from "kysely";
import { batchPerLedger, maxAtOnce } from "../batch-per-ledger.ts";
import { forProcess, type LedgerContext } from "../ledger-context.ts";
import { renewHeartbeat } from "../maintenance/processes.ts";
import { areHeartbeatsSure } from "../maintenance/sure-heartbeats.ts";
import { findAnswers } from "../queries/find-answers.ts";
import { findPayments, type HeldPayment } from "../queries/find-payments.ts";
import type { LedgerSchema, OrdersTable, PaymentsTable } from "../schema.ts";
import { createSortableId } from "../sortable-id.ts";
import { countAsHeld, withLostRun } from "./abandoned-payment.ts";
import { type CodeAdmission, readCodeAdmission } from "./admit-code.ts";
import { availabilityOf } from "./availability.ts";
import { type Commitments, findCommitments } from "./committed-balance.ts";
import { createFreeRuns, type FreeRuns } from "./free-runs.ts";
import { findKeyOwners } from "./key-owners.ts";
import type { LedgerPayment } from "./ledger-payment.ts";
import { lockPayers } from "./lock-payers.ts";
import { writeRelease } from "./release-payment.ts";
import { type ReservationRow, reservationRow, reservedPayment } from "./reservation-row.ts";
import {
  findExecutableOrder,
  isSameAuthorization,
  reserveAnew,
  reserveStillExecutable,
} from "./reserve-again.ts";
import type { ReserveRequest, ReserveResult, ReserveWish } from "./reserve-request.ts";
import {
  areNamesKnown,
  findSoldNames,
  nameSoldItem,
  rememberSoldNames,
  type SoldNames,
} from "./sold-names.ts";
import { takeUpPayment } from "./take-up-payment.ts";
import { insertOrders, orderRow } from "./transfer-order.ts";

/**
 * Handler runs at most for a buyer who has paid, each beyond `maxHandlerRuns` after the death of a
 * process. That process may have died before the handler began, and the money is the seller's
 * already.
 */
const maxRunsOfPaid = 2 * maxHandlerRuns;

/**
 * Reserves a payment, or returns the reason against it. Calls of one moment share their statements.
 *
 * @param alreadyDebited open payments of this payer that were executed, or cancelled, before its
 * balance was read
 */
export async function reservePayment(
  ledger: LedgerContext,
  wish: ReserveWish,
  alreadyDebited: readonly string[] = [],
): Promise<ReserveResult> {
  const now = ledger.now();
  const token = createSortableId(now) + randomUUID();
  const request: ReserveRequest = { paymentId: createSortableId(now), token, ...wish };
  try {
    if (alreadyDebited.length === 0) return await reserveOne(ledger, request);
    // A payment that is missing in one balance may be open for another, so no other caller shares
    // this run.
    const [result] = await reserveAll(ledger, [request], alreadyDebited);
    if (result === undefined) throw new TypeError("A request to reserve has no result");
    return result;
  } catch (error) {
    // The commit may have happened although its confirmation was lost.
    if (isDatabaseError(error, "connection-lost")) {
      const { payer } = wish.id;
      ledger.pendingEnds.add(token, () =>
        writeRelease(ledger, { token, payer, countsAgainstPayer: false }),
      );
    }
    throw error;
  }
}

const reserveOne = batchPerLedger(
  (ledger: LedgerContext, requests: readonly ReserveRequest[]) => reserveAll(ledger, requests, []),
  { maxItems: maxAtOnce },
);

async function reserveAll(
  ledger: LedgerContext,
  requests: readonly ReserveRequest[],
  alreadyDebited: readonly string[],
): Promise<ReserveResult[]> {
  const { write, soldNames } = ledger;
  const reserve = (transaction: Transaction<LedgerSchema>) =>
    reservePayments(ledger, transaction, { requests, alreadyDebited });
  const names = { known: soldNames, now: ledger.now() };
  // Ids are remembered: the row of a new name must outlive a crash of the database.
  const reserved = await write(reserve, areNamesKnown(requests, names) ? forProcess : {});
  rememberSoldNames(soldNames, reserved.soldNames);
  return reserved.results;
}

/** The decisions, in the order of the requests. */
interface Reservations {
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
 * order for every caller. Every increase of a payer's commitments passes here, so a sum read under
 * the lock stays true until the commit. (Other writers only lower them.) A third racer is a frozen
 * process that wakes up and queues the payment that is taken over here. It takes no lock of payers,
 * so a row is overwritten only as it was read. Else all is decided anew.
 */
async function reservePayments(
  ledger: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  batch: { requests: readonly ReserveRequest[]; alreadyDebited: readonly string[] },
): Promise<Reservations> {
  const reserving = await lockAndRead(ledger, transaction, batch);
  const results: ReserveResult[] = [];
  for (const request of batch.requests) results.push(await decide(reserving, request));
  return { results, soldNames: await writeAdmitted(reserving) };
}

/** The rows that decide a batch of requests, read under the locks of its payers, and its writes. */
interface Reserving {
  readonly ledger: LedgerContext;
  readonly transaction: Transaction<LedgerSchema>;
  /** Unix milliseconds. */
  readonly now: number;
  /** By `authorizationKey`, with what this batch has decided. */
  readonly known: Map<string, HeldPayment>;
  /** `payer/keyHash` → `authorizationKey`, with what this batch has decided. */
  readonly keyOwners: Map<string, string>;
  readonly answers: ReadonlyMap<ReserveRequest, SealedAnswer>;
  readonly commitments: Commitments;
  readonly code: CodeAdmission;
  readonly freeRuns: FreeRuns;
  /** Rows of the admitted requests. New names are added for these alone. */
  readonly admitted: { request: ReserveRequest; row: ReservationRow }[];
  readonly inserts: Insertable<PaymentsTable>[];
  readonly overwrites: (() => Promise<void>)[];
  readonly orders: Insertable<OrdersTable>[];
}

async function lockAndRead(
  ledger: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  batch: { requests: readonly ReserveRequest[]; alreadyDebited: readonly string[] },
): Promise<Reserving> {
  const { dialect, heartbeatLeaseMs, keepAnswersMs, releaseLimit: limit } = ledger;
  const { requests, alreadyDebited } = batch;
  const now = ledger.now();
  // Awake again after a freeze, it would count as dead until its next heartbeat. A caller in
  // between would be given the same authorization: two handlers would run for one payment.
  await renewHeartbeat(ledger, transaction, { freshMs: heartbeatLeaseMs / 2 });
  const payers = [...new Set(requests.map(({ id }) => id.payer))];
  const releases = await lockPayers({ transaction, dialect, payers, now });
  const ids = requests.map(({ id }) => id);
  const known = await findPayments({ db: transaction, dialect, ids, heartbeatLeaseMs });
  if (!areHeartbeatsSure(ledger)) for (const held of known.values()) countAsHeld(held);
  const keyOwners = await findKeyOwners({
    db: transaction,
    dialect,
    requests,
    now,
    keepAnswersMs,
  });
  const answers = await findAnswers({ db: transaction, dialect, requests, now });
  const commitments = await findCommitments({ transaction, dialect, requests, alreadyDebited });
  const limits = ledger.codePayers;
  const code = await readCodeAdmission({ transaction, dialect, requests, limits });
  const freeRuns = createFreeRuns({ transaction, dialect, releases, commitments, now, limit });
  return {
    ledger,
    transaction,
    now,
    known,
    keyOwners,
    answers,
    commitments,
    code,
    freeRuns,
    admitted: [],
    inserts: [],
    overwrites: [],
    orders: [],
  };
}

async function decide(reserving: Reserving, request: ReserveRequest): Promise<ReserveResult> {
  const { transaction, known, keyOwners, commitments, code, freeRuns } = reserving;
  const key = authorizationKey(request.id);
  const found = known.get(key);
  const keyOwner = request.keyHash && keyOwners.get(`${request.id.payer}/${request.keyHash}`);
  if (keyOwner && keyOwner !== key) return { outcome: "key_conflict" };
  const payment = found && withLostRun(found);
  const availability = availabilityOf(payment, found?.isHeld ?? false, request);
  if (availability === "key_conflict") return { outcome: "key_conflict" };
  if (found && payment && availability !== "free") {
    const answer = reserving.answers.get(request);
    if (availability === "in_use") return { outcome: "in_use", payment };
    if (availability === "refunded") return { outcome: "refunded", payment };
    if (availability === "delivered") return { outcome: "delivered", payment, answer };
    if (!(await takeUpPayment(reserving, found, request))) return { outcome: "in_use", payment };
    const held = { isHeld: true, isAbandoned: false, isSilent: false };
    known.set(key, { payment, ...held, token: request.token });
    const mayRun = payment.runs < (found.isAbandoned ? maxRunsOfPaid : maxHandlerRuns);
    return { outcome: "resumed", payment, token: request.token, answer, mayRun };
  }
  const executableOrder = payment && (await findExecutableOrder(transaction, payment));
  if (
    payment &&
    executableOrder &&
    !isSameAuthorization({ request, payment, order: executableOrder })
  ) {
    return { outcome: "in_use", payment };
  }
  // A dead process's reservation of this very payment is part of that sum.
  const counted = payment?.state === "reserved" ? payment.value : 0n;
  if (!request.order) {
    if (payment && payment.runs >= maxHandlerRuns) return { outcome: "used_up" };
    const limit = await freeRuns.limitOf(request, { isCounted: counted > 0n });
    if (limit !== undefined) return { outcome: "payer_limited", ...limit };
  }
  if (!commitments.fits(request, counted)) return { outcome: "over_committed" };
  const limited = code.refuse(request, payment);
  if (limited) return limited;
  commitments.add(request, counted);
  return admit(reserving, request, {
    payment,
    token: found?.token ?? null,
    isStillExecutable: executableOrder !== undefined,
  });
}

/** Gathers the writes of a request that is reserved. `payment`: its row, if there is one. */
function admit(
  reserving: Reserving,
  request: ReserveRequest,
  found: { payment: LedgerPayment | undefined; token: string | null; isStillExecutable: boolean },
): ReserveResult {
  const { payment, token, isStillExecutable } = found;
  const { ledger, transaction, now, known, keyOwners, overwrites } = reserving;
  const { dialect, processId: owner } = ledger;
  const key = authorizationKey(request.id);
  const runs = payment?.runs ?? 0;
  const row = reservationRow({ request, dialect, owner, now, runs });
  const paymentId = payment?.id ?? row.id;
  reserving.code.admitted(request, paymentId, payment);
  reserving.admitted.push({ request, row });
  if (payment === undefined) reserving.inserts.push(row);
  else if (isStillExecutable)
    overwrites.push(() => reserveStillExecutable({ transaction, payment, token, row }));
  else overwrites.push(() => reserveAnew({ transaction, payment, token, row }));
  if (request.order) reserving.orders.push(orderRow(paymentId, request.order, dialect));
  if (request.keyHash) keyOwners.set(`${request.id.payer}/${request.keyHash}`, key);
  known.set(key, {
    payment: reservedPayment({ request, runs, paymentId, now }),
    isHeld: true,
    isAbandoned: false,
    isSilent: false,
    token: request.token,
  });
  const before = isStillExecutable ? payment : undefined;
  return {
    outcome: "reserved",
    paymentId,
    token: request.token,
    attempts: before?.attempts ?? 0,
    unusedAtBlock: row.unused_at_block ?? before?.unusedAtBlock,
  };
}

async function writeAdmitted(reserving: Reserving): Promise<SoldNames> {
  const { ledger, transaction, now, admitted, inserts, overwrites, orders } = reserving;
  const { dialect } = ledger;
  const requests = admitted.map(({ request }) => request);
  const known = ledger.soldNames;
  const soldNames = await findSoldNames({ transaction, dialect, requests, known, now });
  for (const { request, row } of admitted) nameSoldItem(row, request, soldNames);
  // Rows of one statement have the same columns.
  const promised = inserts.filter(({ refund_after }) => refund_after !== undefined);
  const others = promised.length === 0 ? inserts : inserts.filter((row) => !promised.includes(row));
  await dialect.insertMany<LedgerSchema, "payments">(transaction, "payments", others);
  await dialect.insertMany<LedgerSchema, "payments">(transaction, "payments", promised);
  for (const overwrite of overwrites) await overwrite();
  await insertOrders({ transaction, dialect, orders });
  await reserving.code.store();
  return soldNames;
}
