import type { AuthorizationId, Hex } from "@coinslot/protocol";
import type { Dialect, StoredAmount } from "@coinslot/storage";
import type { Selectable } from "kysely";
import { bytesToHex } from "viem";
import type { LedgerReads } from "../ledger-context.ts";
import type { RefundsTable } from "../refunds-schema.ts";
import type { Refund } from "./refund.ts";

export type RefundRow = Selectable<RefundsTable>;

/** A row of `refunds`, for its readers. */
export function toRefund(row: RefundRow, { amount }: Dialect): Refund {
  return {
    id: row.id,
    payment: row.payment_id,
    n: row.n,
    network: row.network,
    asset: row.asset,
    payer: row.payer,
    amount: amount.decode(row.amount),
    requested: row.requested === null ? undefined : amount.decode(row.requested),
    state: row.state,
    cause: row.cause ?? undefined,
    origin: row.origin,
    reason: row.reason ?? undefined,
    nonce: row.nonce,
    float: row.float ?? undefined,
    validBefore: row.valid_before === null ? undefined : amount.decode(row.valid_before),
    operation: row.operation_id ?? undefined,
    transactionHash: row.transaction_hash ?? undefined,
    blockNumber: row.block_number ?? undefined,
    createdAt: row.created_at,
    signedAt: row.signed_at ?? undefined,
    confirmedAt: row.confirmed_at ?? undefined,
    finalAt: row.final_at ?? undefined,
  };
}

/** The part of a payment that decides about its refunds, archived or not. */
export interface RefundedPayment {
  id: string;
  authorization: AuthorizationId;
  value: bigint;
  state: string;
  blockNumber: number | undefined;
  transactionHash: Hex | undefined;
  isFinal: boolean;
  isArchived: boolean;
  token: string | null;
  owner: string | null;
  refundOf: string | null;
  refundStartedAt: number | null;
  deliveredAt: number | null;
  /** Failed, and nothing can change that any more. */
  closedAt: number | null;
  createdAt: number;
}

/** Reads a payment, archived or not, and locks its row if asked to. */
export async function findRefundedPayment(
  { db, dialect }: LedgerReads,
  id: string,
  { lock = false }: { lock?: boolean } = {},
): Promise<RefundedPayment | undefined> {
  const live = db.selectFrom("payments").selectAll().where("id", "=", id);
  const row = await (lock ? live.$call(dialect.forUpdate) : live).executeTakeFirst();
  if (row !== undefined) {
    const { network, asset, authority, payer, nonce } = row;
    return {
      id,
      authorization: { network, asset, ...(authority ? { authority } : {}), payer, nonce },
      value: dialect.amount.decode(row.value),
      state: row.state,
      blockNumber: row.block_number ?? undefined,
      transactionHash: row.transaction_hash ?? undefined,
      isFinal: row.final_at !== null,
      isArchived: false,
      token: row.token,
      owner: row.owner,
      refundOf: row.refund_of,
      refundStartedAt: row.refund_started_at,
      deliveredAt: row.delivered_at,
      closedAt: row.closed_at,
      createdAt: row.created_at,
    };
  }
  const kept = db.selectFrom("archived_payments").selectAll().where("id", "=", id);
  const archived = await (lock ? kept.$call(dialect.forUpdate) : kept).executeTakeFirst();
  if (archived === undefined) return undefined;
  const { network, authority } = archived;
  return {
    id,
    authorization: {
      network,
      asset: hex(archived.asset),
      ...(authority ? { authority: hex(authority) } : {}),
      payer: hex(archived.payer),
      nonce: hex(archived.nonce),
    },
    value: dialect.amount.decode(archived.value),
    state: archived.state,
    blockNumber: archived.block_number ?? undefined,
    transactionHash: archived.transaction_hash ? hex(archived.transaction_hash) : undefined,
    isFinal: archived.final_at !== null,
    isArchived: true,
    token: null,
    owner: null,
    refundOf: archived.refund_of,
    refundStartedAt: archived.refund_started_at,
    deliveredAt: archived.delivered_at,
    closedAt: archived.closed_at,
    createdAt: archived.created_at,
  };
}

/** The refunds of a payment, in the order of `n`. */
export function findRefundsOf({ db }: LedgerReads, paymentId: string): Promise<RefundRow[]> {
  return db
    .selectFrom("refunds")
    .selectAll()
    .where("payment_id", "=", paymentId)
    .orderBy("n")
    .execute();
}

/** The amount that these refunds have moved, or may move. */
export function sumOfRefunds(rows: readonly RefundRow[], { amount }: Dialect): bigint {
  return rows.reduce(
    (sum, row) => (row.state === "void" ? sum : sum + amount.decode(row.amount)),
    0n,
  );
}

/**
 * End of the last form that may be valid: an earlier one may be good for longer than the newest.
 */
export function latestEnd(
  { valid_before }: Pick<RefundRow, "valid_before">,
  validBefore: bigint,
  { amount }: Dialect,
): StoredAmount {
  const before = valid_before === null ? 0n : amount.decode(valid_before);
  return amount.encode(before > validBefore ? before : validBefore);
}

function hex(bytes: Uint8Array): Hex {
  return bytesToHex(bytes);
}
