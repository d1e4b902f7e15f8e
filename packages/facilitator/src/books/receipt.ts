import { type Address, findKnownToken, formatMoney, type Hex, symbolOf } from "@coinslot/protocol";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { inSnapshot } from "../ledger/ledger-reads.ts";
import type { LedgerPayment } from "../ledger/payments/ledger-payment.ts";
import { getPayment } from "../ledger/queries/list-payments.ts";
import { createNames } from "./name-sold.ts";

/** Money that was given back. */
export interface RefundOfReceipt {
  /** In the smallest unit. */
  value: bigint;
  transaction: Hex | undefined;
  /** Unix milliseconds. */
  confirmedAt: number | undefined;
}

/** The things that a payment bought, as far as the ledger knows them. */
export interface Sold {
  route?: string | undefined;
  resource?: string | undefined;
  payTo?: string | undefined;
  refunds?: readonly RefundOfReceipt[] | undefined;
}

/** A receipt as JSON. Times are ISO 8601, `null` where there is none. */
export interface Receipt {
  id: string;
  /** `pending`: a reorganisation of the chain may still take it back. */
  state: "pending" | "final";
  /** In whole tokens, where the token is known. */
  amount: string | null;
  /** In the token's smallest unit. */
  value: string;
  /** Symbol of a known token, else its address. */
  token: string;
  asset: Address;
  network: string;
  payer: Address;
  payTo: string | null;
  route: string | null;
  resource: string | null;
  transaction: Hex;
  block: number;
  paidAt: string | null;
  finalAt: string | null;
  deliveredAt: string | null;
  refunds: { amount: string | null; value: string; transaction: Hex | null; at: string | null }[];
}

/**
 * The receipt of a payment.
 *
 * @returns `undefined` for a payment that is not confirmed: there is no money to confirm
 */
export function receiptOf(payment: LedgerPayment, sold: Sold = {}): Receipt | undefined {
  const { id, state, authorization, value, inclusion } = payment;
  if (state !== "confirmed" || inclusion === undefined) return undefined;
  const { network, asset, payer } = authorization;
  const token = findKnownToken(network, asset);
  const inTokens = (amount: bigint) => (token ? formatMoney(amount, token.decimals) : null);
  return {
    id,
    state: payment.finalAt === undefined ? "pending" : "final",
    amount: inTokens(value),
    value: value.toString(),
    token: token ? symbolOf(token) : asset,
    asset,
    network,
    payer,
    payTo: sold.payTo ?? null,
    route: sold.route ?? null,
    resource: sold.resource ?? null,
    transaction: inclusion.transactionHash,
    block: inclusion.blockNumber,
    paidAt: toIso(payment.confirmedAt),
    finalAt: toIso(payment.finalAt),
    deliveredAt: toIso(payment.deliveredAt),
    refunds: (sold.refunds ?? []).map((refund) => ({
      amount: inTokens(refund.value),
      value: refund.value.toString(),
      transaction: refund.transaction ?? null,
      at: toIso(refund.confirmedAt),
    })),
  };
}

/** A payment by its id, archived or not, with the things that it bought and its refunds. */
export function readSale(
  reads: LedgerReads,
  id: string,
): Promise<{ payment: LedgerPayment; sold: Sold } | undefined> {
  return inSnapshot(reads, async (snapshot) => {
    const { db, dialect } = snapshot;
    const payment = await getPayment(snapshot, id);
    if (payment === undefined) return undefined;
    const table = payment.isPruned ? "archived_payments" : "payments";
    const row = await db
      .selectFrom(table)
      .select(["route_id", "resource_id", "pay_to_id"])
      .where("id", "=", id)
      .executeTakeFirstOrThrow();
    const names = createNames(snapshot);
    await names.learn([row.route_id, row.resource_id, row.pay_to_id]);
    const refunds = await db
      .selectFrom("refunds")
      .select(["amount", "transaction_hash", "confirmed_at"])
      .where("payment_id", "=", id)
      .where("state", "in", ["confirmed", "final"])
      .orderBy("n")
      .execute();
    const sold: Sold = {
      route: names.nameOf(row.route_id),
      resource: names.nameOf(row.resource_id),
      payTo: names.nameOf(row.pay_to_id),
      refunds: refunds.map(({ amount, transaction_hash, confirmed_at }) => ({
        value: dialect.amount.decode(amount),
        transaction: transaction_hash ?? undefined,
        confirmedAt: confirmed_at ?? undefined,
      })),
    };
    return { payment, sold };
  });
}

function toIso(milliseconds: number | undefined): string | null {
  return milliseconds === undefined ? null : new Date(milliseconds).toISOString();
}
