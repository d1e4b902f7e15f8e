import type { Dialect } from "@coinslot/storage";
import type { Insertable } from "kysely";
import type { PaymentsTable } from "../schema.ts";
import type { LedgerPayment } from "./ledger-payment.ts";
import type { ReserveRequest } from "./reserve-request.ts";

/** The row of a payment that is reserved, or queued at once. */
export type ReservationRow = Insertable<PaymentsTable> & {
  carried: number;
  unused_at_block: number | null;
};

/** The row of a request to reserve, as if its payment had never been seen. */
export function reservationRow(options: {
  request: ReserveRequest;
  dialect: Dialect;
  /** The process that makes the request. */
  owner: string;
  /** Unix milliseconds. */
  now: number;
  /** Number of handler runs for it. */
  runs: number;
}): ReservationRow {
  const { request, dialect, owner, now, runs } = options;
  const { id, order } = request;
  return {
    id: request.paymentId,
    network: id.network,
    asset: id.asset,
    authority: id.authority === id.asset ? null : (id.authority ?? null),
    payer: id.payer,
    nonce: id.nonce,
    value: dialect.amount.encode(request.value),
    valid_before: dialect.amount.encode(request.validBefore),
    state: order ? "queued" : "reserved",
    fingerprint: request.fingerprint,
    key_hash: request.keyHash ?? null,
    token: request.token,
    owner,
    unused_at_block: unusedAtBlockOf(request) ?? null,
    carried: 0,
    runs,
    is_alone: request.gasAtRisk === undefined ? 0 : 1,
    created_at: now,
    queued_at: order ? now : null,
    scheme: request.kind ?? "eip3009",
    wire: request.sold?.wire ?? null,
    route_id: null,
    resource_id: null,
    pay_to_id: null,
    gas_share: null,
    ...refundColumns(request),
  };
}

function unusedAtBlockOf({ balance, unusedAtBlock }: ReserveRequest): number | undefined {
  return balance && Number(unusedAtBlock ?? balance.blockNumber);
}

/** Only where a route gives back: one more column costs every other insert. */
function refundColumns({ sold }: ReserveRequest): Partial<ReservationRow> {
  if (sold?.refund === undefined) return {};
  const { afterSeconds, includeAbandoned } = sold.refund;
  return { refund_after: afterSeconds, refunds_abandoned: includeAbandoned ? 1 : 0 };
}

/** The payment once its row is written, for later requests of the same database transaction. */
export function reservedPayment(options: {
  request: ReserveRequest;
  /** Number of handler runs for it. */
  runs: number;
  paymentId: string;
  /** Unix milliseconds. */
  now: number;
}): LedgerPayment {
  const { request, runs, paymentId, now } = options;
  return {
    id: paymentId,
    kind: request.kind ?? "eip3009",
    authorization: request.id,
    value: request.value,
    validBefore: request.validBefore,
    state: request.order ? "queued" : "reserved",
    fingerprint: request.fingerprint,
    keyHash: request.keyHash,
    unusedAtBlock: unusedAtBlockOf(request),
    transactionId: undefined,
    attempts: 0,
    runs,
    settlesAlone: request.gasAtRisk !== undefined,
    inclusion: undefined,
    reason: undefined,
    createdAt: now,
    queuedAt: request.order && now,
    submittedAt: undefined,
    confirmedAt: undefined,
    finalAt: undefined,
    deliveredAt: undefined,
    closedAt: undefined,
    refundStartedAt: undefined,
    refundOf: undefined,
    isPruned: false,
  };
}
