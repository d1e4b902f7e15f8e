import { findKnownToken, formatMoney, isNetwork } from "@coinslot/protocol";
import * as z from "zod";
import type { LedgerReads } from "../../ledger/ledger-context.ts";
import { inSnapshot } from "../../ledger/ledger-reads.ts";
import type { LedgerPayment } from "../../ledger/payments/ledger-payment.ts";
import { getPayment } from "../../ledger/queries/list-payments.ts";
import { listRefunds } from "../../ledger/refunds/list-refunds.ts";
import type { Refund } from "../../ledger/refunds/refund.ts";
import { defineOperation } from "../../operators/operation.ts";
import { OperationRefusedError } from "../../operators/operation-refused-error.ts";
import { type PaymentRecord, toRecords } from "../payment-record.ts";
import { toIso } from "../wire-forms.ts";
import { listSteps } from "./list-steps.ts";
import { readEvents } from "./read-events.ts";
import { readTransaction } from "./read-transactions.ts";
import { type PaymentTimeline, timelineResult } from "./timeline-result.ts";

export const timelineArgument = z.strictObject({ id: z.string().min(1).max(100) });

/** The way of one payment: steps, transactions, refunds, events, and its messages decoded. */
export const timelineOperation = defineOperation({
  name: "payments.timeline",
  access: "read",
  argument: timelineArgument,
  result: timelineResult,
  run: (reads, { id }) =>
    inSnapshot(reads, async (snapshot) => {
      const timeline = await readTimeline(snapshot, id);
      if (timeline !== undefined) return timeline;
      throw new OperationRefusedError("unknown_payment", "The ledger has no payment with this id");
    }),
});

async function readTimeline(
  reads: LedgerReads,
  wanted: string,
): Promise<PaymentTimeline | undefined> {
  const found = await getPayment(reads, wanted);
  // The operation of a refund is shown with the payment that it gives back.
  const payment = found?.refundOf === undefined ? found : await getPayment(reads, found.refundOf);
  if (payment === undefined) return undefined;
  const [record] = await toRecords(reads, [payment]);
  if (record === undefined) return undefined;
  const own = await readRow(reads, payment);
  const carried = await readCarrier(reads, payment);
  const { refunds } = await listRefunds(reads, { payment: payment.id, limit: 100 });
  const ofRefunds = await Promise.all(refunds.map((refund) => readRefundCarrier(reads, refund)));
  const [carrier] = carried;
  const share = own.gas_share;
  const parts = {
    payment: {
      ...record,
      scheme: payment.kind,
      authority: payment.authorization.authority ?? payment.authorization.asset,
      attempts: payment.attempts,
      runs: payment.runs,
      gasShare: share === null ? null : String(share),
      gasCost: costOf(share, carrier),
    },
    offer: offerOf(record, payment.kind),
    transactions: [...carried, ...ofRefunds.flat()],
    refunds: refunds.map((refund) => toRefundRecord(refund)),
    events: await readEvents(reads, payment.id),
    authorization: await readAuthorization(reads, payment),
  };
  const times = { queuedAt: toIso(payment.queuedAt), closedAt: toIso(payment.closedAt) };
  const steps = await listSteps(reads, { ...parts, owner: own.owner, ...times });
  return { ...parts, steps };
}

function offerOf(record: PaymentRecord, scheme: string): PaymentTimeline["offer"] {
  const { route, resource, network, asset, symbol, value, amount, payTo, wire } = record;
  return {
    ...{ at: null, route, resource, network, asset, symbol },
    ...{ value, amount, payTo, wire, scheme },
  };
}

function readCarrier(reads: LedgerReads, { transactionId, authorization }: LedgerPayment) {
  const { payer, nonce } = authorization;
  return transactionId === undefined
    ? Promise.resolve([])
    : readTransaction(reads, { transactionId, payer, nonce });
}

async function readRefundCarrier(reads: LedgerReads, { operation }: Refund) {
  const payment = operation === undefined ? undefined : await getPayment(reads, operation);
  return payment === undefined ? [] : readCarrier(reads, payment);
}

async function readRow(
  { db }: LedgerReads,
  { id, isPruned }: LedgerPayment,
): Promise<{ gas_share: number | null; owner: string | null }> {
  if (isPruned) {
    const row = await db
      .selectFrom("archived_payments")
      .select("gas_share")
      .where("id", "=", id)
      .executeTakeFirst();
    return { gas_share: row?.gas_share ?? null, owner: null };
  }
  const row = await db
    .selectFrom("payments")
    .select(["gas_share", "owner"])
    .where("id", "=", id)
    .executeTakeFirst();
  return row ?? { gas_share: null, owner: null };
}

/** The share of a transaction's cost, rounded down. */
function costOf(
  share: number | null,
  carrier: PaymentTimeline["transactions"][number] | undefined,
): string | null {
  if (share === null || !carrier?.gasCost || !carrier.gasUsed) return null;
  const used = BigInt(carrier.gasUsed);
  return used === 0n ? null : ((BigInt(carrier.gasCost) * BigInt(share)) / used).toString();
}

async function readAuthorization(
  { db, dialect }: LedgerReads,
  { id, isPruned, authorization, value, validBefore }: LedgerPayment,
): Promise<PaymentTimeline["authorization"]> {
  if (isPruned) return "pruned";
  const order = await db
    .selectFrom("orders")
    .select(["pay_to", "valid_after"])
    .where("payment_id", "=", id)
    .executeTakeFirst();
  if (order === undefined) return null;
  return {
    token: authorization.asset,
    from: authorization.payer,
    to: order.pay_to,
    value: value.toString(),
    validAfter: dialect.amount.decode(order.valid_after).toString(),
    validBefore: validBefore.toString(),
    nonce: authorization.nonce,
  };
}

function toRefundRecord(refund: Refund): PaymentTimeline["refunds"][number] {
  const { id, n, state, cause, origin, reason, amount, network, asset } = refund;
  const token = isNetwork(network) ? findKnownToken(network, asset) : undefined;
  return {
    ...{ id, n, state, cause: cause ?? null, origin, reason: reason ?? null },
    value: amount.toString(),
    amount: token ? formatMoney(amount, token.decimals) : null,
    float: refund.float ?? null,
    transaction: refund.transactionHash ?? null,
    block: refund.blockNumber ?? null,
    createdAt: new Date(refund.createdAt).toISOString(),
    signedAt: toIso(refund.signedAt),
    confirmedAt: toIso(refund.confirmedAt),
    finalAt: toIso(refund.finalAt),
  };
}
