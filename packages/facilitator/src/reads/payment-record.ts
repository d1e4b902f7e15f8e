import { findKnownToken, formatMoney, symbolOf } from "@coinslot/protocol";
import * as z from "zod";
import { createNames } from "../books/name-sold.ts";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import type { LedgerPayment } from "../ledger/payments/ledger-payment.ts";
import { toIso } from "./wire-forms.ts";

/** A payment in JSON. Times are ISO 8601, amounts exact. `null`: there is none. */
export const paymentRecordSchema = z.object({
  id: z.string(),
  state: z.string(),
  network: z.string(),
  asset: z.string(),
  /** Ticker of a known token. */
  symbol: z.string().nullable(),
  payer: z.string(),
  nonce: z.string(),
  /** In the token's smallest unit. */
  value: z.string(),
  /** In whole tokens, where the token is known. */
  amount: z.string().nullable(),
  /** As the seller has named it. `null` also where its name is forgotten. */
  route: z.string().nullable(),
  /** URL that was sold: a buyer chooses a part of it. */
  resource: z.string().nullable(),
  payTo: z.string().nullable(),
  /** `x402v1`, `x402v2` or `mpp`. */
  wire: z.string().nullable(),
  transaction: z.string().nullable(),
  block: z.number().nullable(),
  reason: z.string().nullable(),
  createdAt: z.string(),
  submittedAt: z.string().nullable(),
  confirmedAt: z.string().nullable(),
  finalAt: z.string().nullable(),
  deliveredAt: z.string().nullable(),
  /** When its refund began. */
  refundedAt: z.string().nullable(),
  /** `forever` beyond the latest date. */
  validBefore: z.string(),
  /** Its signed forms are deleted. */
  isPruned: z.boolean(),
});

/** A payment in JSON. */
export type PaymentRecord = z.infer<typeof paymentRecordSchema>;

/** The record of a payment, as far as its own row says. */
export type SoldThing = Pick<PaymentRecord, "route" | "resource" | "payTo" | "wire">;

const nothing: SoldThing = { route: null, resource: null, payTo: null, wire: null };

/** Makes records of payments, in their order, with the things that they bought. */
export async function toRecords(
  reads: LedgerReads,
  payments: readonly LedgerPayment[],
): Promise<PaymentRecord[]> {
  const sold = await readSold(reads, payments);
  return payments.map((payment) => toRecord(payment, sold.get(payment.id) ?? nothing));
}

function toRecord(payment: LedgerPayment, sold: SoldThing): PaymentRecord {
  const { network, asset, payer, nonce } = payment.authorization;
  const token = findKnownToken(network, asset);
  return {
    id: payment.id,
    state: payment.state,
    network,
    asset,
    symbol: token ? symbolOf(token) : null,
    payer,
    nonce,
    value: payment.value.toString(),
    amount: token ? formatMoney(payment.value, token.decimals) : null,
    ...sold,
    transaction: payment.inclusion?.transactionHash ?? null,
    block: payment.inclusion?.blockNumber ?? null,
    reason: payment.reason ?? null,
    createdAt: new Date(payment.createdAt).toISOString(),
    submittedAt: toIso(payment.submittedAt),
    confirmedAt: toIso(payment.confirmedAt),
    finalAt: toIso(payment.finalAt),
    deliveredAt: toIso(payment.deliveredAt),
    refundedAt: toIso(payment.refundStartedAt),
    validBefore: untilWhen(payment.validBefore),
    isPruned: payment.isPruned,
  };
}

async function readSold(
  reads: LedgerReads,
  payments: readonly LedgerPayment[],
): Promise<Map<string, SoldThing>> {
  const { db, dialect } = reads;
  const found = new Map<string, SoldThing>();
  const names = createNames(reads);
  for (const table of ["payments", "archived_payments"] as const) {
    const isArchive = table === "archived_payments";
    const ids = payments.filter(({ isPruned }) => isPruned === isArchive).map(({ id }) => id);
    if (ids.length === 0) continue;
    const rows = await db
      .selectFrom(table)
      .select(["id", "route_id", "resource_id", "pay_to_id", "wire"])
      .where("id", "in", dialect.among(ids))
      .execute();
    await names.learn(rows.flatMap((row) => [row.route_id, row.resource_id, row.pay_to_id]));
    for (const { id, route_id, resource_id, pay_to_id, wire } of rows) {
      found.set(id, {
        route: names.nameOf(route_id) ?? null,
        resource: names.nameOf(resource_id) ?? null,
        payTo: names.nameOf(pay_to_id) ?? null,
        wire,
      });
    }
  }
  return found;
}

/** The latest moment that a date can hold. */
const lastSecond = 8_640_000_000_000n;

/** An authorization may be valid beyond the latest date. */
function untilWhen(seconds: bigint): string {
  return seconds > lastSecond ? "forever" : new Date(Number(seconds) * 1000).toISOString();
}
