import type { AuthorizationId, Hex, PaymentKind, SettleErrorReason } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { Selectable } from "kysely";
import type { PaymentState, PaymentsTable } from "../schema.ts";

/** Block and transaction that executed a payment. */
export interface Inclusion {
  transactionHash: Hex;
  blockNumber: number;
  blockHash: Hex;
}

/** A payment as recorded in the ledger. Without token and signature: it may be shown. */
export interface LedgerPayment {
  /** Sorts by time of creation. */
  id: string;
  kind: PaymentKind;
  authorization: AuthorizationId;
  /** In the token's smallest unit. */
  value: bigint;
  /** Unix seconds. */
  validBefore: bigint;
  state: PaymentState;
  fingerprint: string;
  keyHash: string | undefined;
  unusedAtBlock: number | undefined;
  transactionId: string | undefined;
  /** Number of transactions stored for it. */
  attempts: number;
  /** Handler runs. Of a settled payment each is counted before it begins, otherwise at its end. */
  runs: number;
  settlesAlone: boolean;
  /** The transaction that executed it, or, of a failed one, that did not. */
  inclusion: Inclusion | undefined;
  /** Reason of its failure or expiry; kept while a failed one is tried again. */
  reason: SettleErrorReason | undefined;
  /** Unix milliseconds, like all that follow. */
  createdAt: number;
  queuedAt: number | undefined;
  submittedAt: number | undefined;
  confirmedAt: number | undefined;
  finalAt: number | undefined;
  deliveredAt: number | undefined;
  closedAt: number | undefined;
  /** A refund of it has begun: no request is served by it any more. */
  refundStartedAt: number | undefined;
  /** Id of the payment that it gives back: its payer is the float, and it is no sale. */
  refundOf: string | undefined;
  /**
   * True once its signed forms, its request's fingerprint and its key are deleted: `fingerprint` is
   * empty then.
   */
  isPruned: boolean;
}

/** The part of a payment that a settlement's response is made of. */
export type PaymentStanding = Pick<
  LedgerPayment,
  | "id"
  | "kind"
  | "authorization"
  | "value"
  | "state"
  | "transactionId"
  | "inclusion"
  | "reason"
  | "confirmedAt"
>;

/** The part of a payment that its waiters get. */
export interface ConcludedPayment extends PaymentStanding {
  /** The reservation that the state belongs to; `undefined` once that has given its token up. */
  token: string | undefined;
  /** The process of the request that holds that token. */
  owner: string | undefined;
  /** Where this process has recorded the outcome. */
  recorded?: RecordedOutcome | undefined;
}

/** The part of a payment that metrics of money divide by. */
export interface RecordedOutcome {
  /** A name of `sold_names`; `null` where the payment names no route. */
  routeId: number | null;
  /** It gives another payment back. */
  isRefund: boolean;
  /** Gas units of our transaction that tried it; `null` where none of ours did. */
  gasShare: number | null;
}

const standingColumns = [
  "id",
  "network",
  "asset",
  "authority",
  "scheme",
  "payer",
  "nonce",
  "value",
  "state",
  "transaction_id",
  "transaction_hash",
  "block_number",
  "block_hash",
  "reason",
  "confirmed_at",
] as const satisfies readonly (keyof PaymentsTable)[];

/**
 * The columns of a `ConcludedPayment`: half of them all, and reading them is much of an outcome's
 * cost.
 */
export const concludedColumns = [...standingColumns, "token", "owner"] as const;

/** The columns of a `RecordedOutcome`. */
export const outcomeColumns = [
  "route_id",
  "refund_of",
  "gas_share",
] as const satisfies readonly (keyof PaymentsTable)[];

type StandingRow = Pick<Selectable<PaymentsTable>, (typeof standingColumns)[number]>;

export type ConcludedRow = Pick<Selectable<PaymentsTable>, (typeof concludedColumns)[number]>;

/** A row of `concludedColumns` and `outcomeColumns`. */
export type RecordedRow = ConcludedRow &
  Pick<Selectable<PaymentsTable>, (typeof outcomeColumns)[number]>;

/** Reads a row whose outcome this process has recorded. */
export function toRecordedPayment(row: RecordedRow, dialect: Dialect): ConcludedPayment {
  const { route_id: routeId, refund_of, gas_share: gasShare } = row;
  const recorded = { routeId, isRefund: refund_of !== null, gasShare };
  return Object.assign(toConcludedPayment(row, dialect), { recorded });
}

/** The columns of an identity. */
export const identityColumns = ["network", "asset", "authority", "payer", "nonce"] as const;

/** Reads a row of `identityColumns`. */
export function toAuthorizationId(
  row: Pick<Selectable<PaymentsTable>, (typeof identityColumns)[number]>,
): AuthorizationId {
  const { network, asset, authority, payer, nonce } = row;
  if (authority === null) return { network, asset, payer, nonce };
  return { network, asset, authority, payer, nonce };
}

/** Reads a row of `concludedColumns`. */
export function toConcludedPayment(row: ConcludedRow, dialect: Dialect): ConcludedPayment {
  const { id, kind, authorization, value, state, transactionId, inclusion, reason, confirmedAt } =
    toStanding(row, dialect);
  return {
    id,
    kind,
    authorization,
    value,
    state,
    transactionId,
    inclusion,
    reason,
    confirmedAt,
    token: row.token ?? undefined,
    owner: row.owner ?? undefined,
  };
}

function toStanding(row: StandingRow, dialect: Dialect): PaymentStanding {
  const { transaction_hash, block_number, block_hash } = row;
  return {
    id: row.id,
    kind: row.scheme,
    authorization: toAuthorizationId(row),
    value: dialect.amount.decode(row.value),
    state: row.state,
    transactionId: row.transaction_id ?? undefined,
    inclusion:
      transaction_hash === null || block_number === null || block_hash === null
        ? undefined
        : { transactionHash: transaction_hash, blockNumber: block_number, blockHash: block_hash },
    reason: row.reason ?? undefined,
    confirmedAt: row.confirmed_at ?? undefined,
  };
}

/**
 * The columns of a `LedgerPayment`. Frequent statements name them: SQLite reads `*` in twice the
 * time, since the names behind it follow the schema.
 */
export const paymentColumns = [
  ...standingColumns,
  "valid_before",
  "fingerprint",
  "key_hash",
  "unused_at_block",
  "carried",
  "runs",
  "is_alone",
  "created_at",
  "queued_at",
  "submitted_at",
  "final_at",
  "delivered_at",
  "closed_at",
  "refund_started_at",
  "refund_of",
] as const satisfies readonly (keyof PaymentsTable)[];

export type PaymentRow = Pick<Selectable<PaymentsTable>, (typeof paymentColumns)[number]>;

/** Reads a row of `paymentColumns`. */
export function toLedgerPayment(row: PaymentRow, dialect: Dialect): LedgerPayment {
  const { id, kind, authorization, value, state, transactionId, inclusion, reason } = toStanding(
    row,
    dialect,
  );
  return {
    id,
    kind,
    authorization,
    value,
    state,
    transactionId,
    inclusion,
    reason,
    validBefore: dialect.amount.decode(row.valid_before),
    fingerprint: row.fingerprint,
    keyHash: row.key_hash ?? undefined,
    unusedAtBlock: row.unused_at_block ?? undefined,
    attempts: row.carried,
    runs: row.runs,
    settlesAlone: row.is_alone === 1,
    createdAt: row.created_at,
    queuedAt: row.queued_at ?? undefined,
    submittedAt: row.submitted_at ?? undefined,
    confirmedAt: row.confirmed_at ?? undefined,
    finalAt: row.final_at ?? undefined,
    deliveredAt: deliveredAtOf(row),
    closedAt: row.closed_at ?? undefined,
    refundStartedAt: row.refund_started_at ?? undefined,
    refundOf: row.refund_of ?? undefined,
    isPruned: false,
  };
}

/**
 * When its answer went out. A refund of an undelivered payment writes its own time there, so that
 * the previous release does not serve it.
 */
export function deliveredAtOf({
  delivered_at,
  refund_started_at,
}: Pick<Selectable<PaymentsTable>, "delivered_at" | "refund_started_at">): number | undefined {
  if (delivered_at === null || delivered_at === refund_started_at) return undefined;
  return delivered_at;
}
