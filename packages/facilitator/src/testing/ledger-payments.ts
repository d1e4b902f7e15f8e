import type { AuthorizationId, Hex } from "@coinslot/protocol";
import type { Lease } from "@coinslot/storage";
import { expect } from "vitest";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { recordOutcomes } from "../ledger/payments/record-outcomes.ts";
import { reservePayment } from "../ledger/payments/reserve-payments.ts";
import type { ReserveWish } from "../ledger/payments/reserve-request.ts";
import { findOverdue } from "../ledger/queries/find-watched.ts";
import { getPayments } from "../ledger/queries/list-payments.ts";
import { timeIsOver } from "../ledger/states.ts";
import { storeTransaction } from "../ledger/transactions/store-transaction.ts";

export const network = "eip155:9745" as const;
export const asset = `0x${"aa".repeat(20)}` satisfies Hex;
export const payer = `0x${"bb".repeat(20)}` satisfies Hex;
export const relayer = `0x${"cc".repeat(20)}` satisfies Hex;
export const order = {
  payTo: `0x${"dd".repeat(20)}`,
  validAfter: 0n,
  signature: `0x${"11".repeat(65)}`,
} satisfies ReserveWish["order"];

/** Block of the transaction with nonce 0. */
export const inclusion = { transactionHash: hash(1_000), blockNumber: 5, blockHash: hash(5) };

/** Thirty-two bytes that encode a number. */
export function hash(number: number): Hex {
  return `0x${number.toString(16).padStart(64, "0")}`;
}

const fingerprint = "GET /a";

let nonces = 0;
/** A new authorization. */
export function authorization(changes: Partial<AuthorizationId> = {}): AuthorizationId {
  nonces += 1;
  return { network, asset, payer, nonce: hash(nonces), ...changes };
}

/** A request that reserves a new payment of 10 units. */
export function wish(changes: Partial<ReserveWish> = {}): ReserveWish {
  const id = changes.id ?? authorization();
  return {
    id,
    fingerprint,
    value: 10n,
    validBefore: 2n ** 256n - 1n,
    payTo: order.payTo,
    ...changes,
  };
}

/** A transaction with a nonce, to be stored for payments of `wish`. */
export function transaction(nonce: number, paymentIds: readonly string[]) {
  return {
    id: `transaction ${nonce} of ${paymentIds.length}`,
    network,
    relayer,
    nonce,
    gasLimit: 100_000n,
    payments: paymentIds.map((id) => ({ id, fingerprint })),
    broadcast: {
      hash: hash(1_000 + nonce),
      raw: "0x02",
      content: "payments",
      maxFeePerGas: 7n,
      maxPriorityFeePerGas: 1n,
    },
  } as const;
}

/** Takes the lease of the relayer, which must be free. */
export async function takeLease(ledger: LedgerContext): Promise<Lease> {
  const lease = await ledger.leases.acquire({
    name: "relayer",
    owner: ledger.processId,
    ttlMs: 60_000,
  });
  if (lease === undefined) throw new Error("The lease is taken");
  return lease;
}

/** Queues a new payment, and returns its id. */
export async function queue(
  ledger: LedgerContext,
  changes: Partial<ReserveWish> = {},
): Promise<string> {
  const reserved = await reservePayment(ledger, wish({ order, ...changes }));
  if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
  return reserved.paymentId;
}

/** Queues a new payment, and stores the transaction with nonce 0 for it. */
export async function submit(
  ledger: LedgerContext,
  changes: Partial<ReserveWish> = {},
): Promise<string> {
  const id = await queue(ledger, changes);
  const lease = await takeLease(ledger);
  expect(await storeTransaction(ledger, lease, transaction(0, [id]))).toBe("stored");
  await ledger.leases.release(lease);
  return id;
}

/** Ends the queued payments that are valid only before a time, or less, as unused ones. */
export async function expire(ledger: LedgerContext, before: bigint) {
  const wish = { network, state: "queued", before, limit: 1_000 } as const;
  const payments = (await findOverdue(ledger, wish)).map(({ payment }) => payment);
  const ids = payments.map(({ id }) => id);
  const queuedUnder = payments.map(({ fingerprint }) => fingerprint);
  return recordOutcomes(ledger, [{ failed: [{ ids, reason: timeIsOver }], queuedUnder }]);
}

export async function stateOf(ledger: LedgerContext, id: string): Promise<string | undefined> {
  return (await getPayments(ledger, [id]))[0]?.state;
}
