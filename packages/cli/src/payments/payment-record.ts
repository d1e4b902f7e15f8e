import type { LedgerPayment } from "@coinslot/facilitator";
import { findKnownToken, formatMoney } from "@coinslot/protocol";

/** A payment for people and scripts: times in ISO 8601, amounts exact. `null`: there is none. */
export interface PaymentRecord {
  id: string;
  state: string;
  network: string;
  asset: string;
  payer: string;
  nonce: string;
  /** In the token's smallest unit. */
  value: string;
  /** In whole tokens, where the token is known. */
  amount: string | null;
  transaction: string | null;
  block: number | null;
  reason: string | null;
  createdAt: string;
  submittedAt: string | null;
  confirmedAt: string | null;
  finalAt: string | null;
  deliveredAt: string | null;
  validBefore: string;
}

/** The columns of an export, in order. */
export const recordColumns = [
  "id",
  "state",
  "network",
  "asset",
  "payer",
  "nonce",
  "value",
  "amount",
  "transaction",
  "block",
  "reason",
  "createdAt",
  "submittedAt",
  "confirmedAt",
  "finalAt",
  "deliveredAt",
  "validBefore",
] as const satisfies readonly (keyof PaymentRecord)[];

/** The public fields of a payment. */
export function toRecord(payment: LedgerPayment): PaymentRecord {
  const { network, asset, payer, nonce } = payment.authorization;
  const known = findKnownToken(network, asset);
  return {
    id: payment.id,
    state: payment.state,
    network,
    asset,
    payer,
    nonce,
    value: payment.value.toString(),
    amount: known ? formatMoney(payment.value, known.decimals) : null,
    transaction: payment.inclusion?.transactionHash ?? null,
    block: payment.inclusion?.blockNumber ?? null,
    reason: payment.reason ?? null,
    createdAt: new Date(payment.createdAt).toISOString(),
    submittedAt: toIso(payment.submittedAt),
    confirmedAt: toIso(payment.confirmedAt),
    finalAt: toIso(payment.finalAt),
    deliveredAt: toIso(payment.deliveredAt),
    validBefore: untilWhen(payment.validBefore),
  };
}

function toIso(milliseconds: number | undefined): string | null {
  return milliseconds === undefined ? null : new Date(milliseconds).toISOString();
}

/** The latest moment that a date can hold. */
const lastSecond = 8_640_000_000_000n;

/** An authorization may be valid beyond the latest date. */
function untilWhen(seconds: bigint): string {
  return seconds > lastSecond ? "forever" : new Date(Number(seconds) * 1000).toISOString();
}
