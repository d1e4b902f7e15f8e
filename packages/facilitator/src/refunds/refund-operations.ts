import {
  addressSchema,
  amountSchema,
  bytes32Schema,
  isNetwork,
  networkSchema,
  toLowerHex,
} from "@coinslot/protocol";
import * as z from "zod";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { createRefund } from "../ledger/refunds/create-refund.ts";
import { getRefund, listRefunds } from "../ledger/refunds/list-refunds.ts";
import type { Refund } from "../ledger/refunds/refund.ts";
import { RefundError } from "../ledger/refunds/refund-error.ts";
import { refundStates } from "../ledger/refunds-schema.ts";
import { defineOperation, type Operation } from "../operators/operation.ts";
import { OperationRefusedError } from "../operators/operation-refused-error.ts";
import { toMoney } from "../reads/wire-forms.ts";
import { findSold } from "./find-sold.ts";
import { signedRefundsSchema, unsignedRefundsSchema } from "./refund-file.ts";

const amount = amountSchema.transform(BigInt);
const id = z.string().min(1).max(100);
const reason = z.string().min(1).max(500);

/** A refund on the wire of the operator's commands. States of a later release pass. */
const refundRecord = z.object({
  id: z.string(),
  payment: z.string(),
  /** The payment's purchase, in lists and single refunds, where it is known. */
  route: z.string().optional(),
  resource: z.string().optional(),
  n: z.number(),
  network: networkSchema,
  asset: addressSchema,
  payer: addressSchema,
  amount,
  /** Ticker of a known token, and the amount in whole ones. */
  symbol: z.string().optional(),
  whole: z.string().optional(),
  requested: amount.optional(),
  state: z.string(),
  cause: z.string().optional(),
  origin: z.string(),
  reason: z.string().optional(),
  nonce: bytes32Schema,
  float: addressSchema.optional(),
  validBefore: amount.optional(),
  operation: z.string().optional(),
  transactionHash: bytes32Schema.optional(),
  blockNumber: z.number().optional(),
  createdAt: z.number(),
  signedAt: z.number().optional(),
  confirmedAt: z.number().optional(),
  finalAt: z.number().optional(),
});

/** A refund as an operator's command returns it. */
export type RefundRecord = z.output<typeof refundRecord>;

function toWire(refund: Refund): z.input<typeof refundRecord> {
  const { amount, symbol } = toMoney(refund.network, refund.asset, refund.amount);
  return {
    ...refund,
    amount: String(refund.amount),
    ...(amount === null || symbol === null ? {} : { symbol, whole: amount }),
    requested: refund.requested?.toString(),
    validBefore: refund.validBefore?.toString(),
  };
}

/** Refunds with what their payments have bought. */
async function withSold(
  reads: LedgerReads,
  refunds: readonly Refund[],
): Promise<z.input<typeof refundRecord>[]> {
  const sold = await findSold(reads, [...new Set(refunds.map(({ payment }) => payment))]);
  return refunds.map((refund) => ({ ...toWire(refund), ...sold.get(refund.payment) }));
}

/** Begins a refund. Without a running seller it waits for the next one. */
export const createRefundOperation = defineOperation({
  name: "refunds.create",
  access: "write",
  argument: z.strictObject({
    payment: id,
    amount: amount.optional(),
    reason: reason.optional(),
    idempotencyKey: z.string().min(1).max(128),
  }),
  result: refundRecord,
  run: ({ ledger, seller }, request) =>
    refusing(async () => {
      const refund = await createRefund(ledger, request);
      seller?.wakeRefunds();
      return toWire(refund);
    }),
});

/** A page of refunds, the newest first. */
export const listRefundsOperation = defineOperation({
  name: "refunds.list",
  access: "read",
  argument: z.strictObject({
    payment: id.optional(),
    payer: addressSchema.optional(),
    network: z.string().refine(isNetwork).optional(),
    state: z.enum(refundStates).optional(),
    cursor: z.string().max(100).optional(),
    limit: z.int().min(1).max(1_000).optional(),
  }),
  result: z.object({ refunds: z.array(refundRecord), nextCursor: z.string().optional() }),
  run: (reads, { payer, ...filter }) =>
    refusing(async () => {
      const page = await listRefunds(reads, { ...filter, payer: payer && toLowerHex(payer) });
      return { refunds: await withSold(reads, page.refunds), nextCursor: page.nextCursor };
    }),
});

/** A refund by its id. */
export const getRefundOperation = defineOperation({
  name: "refunds.get",
  access: "read",
  argument: z.strictObject({ id }),
  result: refundRecord,
  run: (reads, wanted) =>
    refusing(async () => {
      const refund = await getRefund(reads, wanted.id);
      const [record] = await withSold(reads, refund === undefined ? [] : [refund]);
      if (record !== undefined) return record;
      throw new RefundError("unknown_refund", "The ledger has no such refund");
    }),
});

/** Lets a refund that waits for the operator's word go on. */
export const approveRefundOperation = defineOperation({
  name: "refunds.approve",
  access: "seller",
  argument: z.strictObject({ id }),
  result: refundRecord,
  run: ({ refunds }, wanted) => refusing(async () => toWire(await refunds.approve(wanted.id))),
});

/** Takes the operator's own transaction as a refund that no signature can pay. */
export const markRefundPaidOperation = defineOperation({
  name: "refunds.paid",
  access: "seller",
  argument: z.strictObject({ id, transactionHash: bytes32Schema }),
  result: refundRecord,
  timeoutMs: 60_000,
  run: ({ refunds }, request) => refusing(async () => toWire(await refunds.markPaid(request))),
});

/** Ends a refund that nobody has signed. */
export const cancelRefundOperation = defineOperation({
  name: "refunds.cancel",
  access: "seller",
  argument: z.strictObject({ id }),
  result: refundRecord,
  run: ({ refunds }, wanted) => refusing(async () => toWire(await refunds.cancel(wanted.id))),
});

/** The refunds that wait for a signature, as a file for `signRefunds`. */
export const exportRefundsOperation = defineOperation({
  name: "refunds.export",
  access: "seller",
  argument: z.strictObject({
    float: addressSchema.optional(),
    ids: z.array(id).max(1_000).optional(),
    validForSeconds: z.int().positive().optional(),
  }),
  result: unsignedRefundsSchema,
  maxArgumentBytes: 2 ** 17,
  timeoutMs: 60_000,
  run: ({ refunds }, request) => refusing(() => refunds.exportUnsigned(request)),
});

/** Takes signed refunds back. Their terms are those of the ledger's own rows. */
export const importRefundsOperation = defineOperation({
  name: "refunds.import",
  access: "seller",
  argument: signedRefundsSchema,
  result: z.object({
    sent: z.array(refundRecord),
    refused: z.array(z.object({ id: z.string(), message: z.string() })),
  }),
  maxArgumentBytes: 2 ** 21,
  timeoutMs: 60_000,
  run: ({ refunds }, signed) =>
    refusing(async () => {
      const { sent, refused } = await refunds.importSigned(signed);
      return { sent: sent.map(toWire), refused };
    }),
});

export const refundOperations: readonly Operation[] = [
  createRefundOperation,
  listRefundsOperation,
  getRefundOperation,
  approveRefundOperation,
  markRefundPaidOperation,
  cancelRefundOperation,
  exportRefundsOperation,
  importRefundsOperation,
];

/** The caller's reasons are for the caller; every other error is for the log. */
async function refusing<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof RefundError)) throw error;
    throw new OperationRefusedError(error.reason, error.message, { cause: error });
  }
}
