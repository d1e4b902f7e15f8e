import { isDeepStrictEqual } from "node:util";
import {
  isSameAddress,
  type Payment,
  type PaymentPayload,
  type PaymentPayloadV1,
  type PaymentPayloadV2,
  type PaymentRequirements,
  parseNetwork,
  readPayment,
  recoverPayer,
} from "@coinslot/protocol";
import type { Offer } from "./offer.ts";

/** A payment, and the part of the offer that it pays. */
export interface Purchase {
  payload: PaymentPayload;
  requirements: PaymentRequirements;
  payment: Payment;
}

/**
 * Finds the part of this request's offer that a payment pays.
 *
 * @returns `undefined` when it pays nothing that is offered.
 */
export async function matchRequirements(
  payload: PaymentPayload,
  offer: Offer,
): Promise<Purchase | undefined> {
  const candidates =
    payload.x402Version === 1 ? candidatesV1(payload, offer) : candidatesV2(payload, offer);
  const purchases = candidates.flatMap((requirements): Purchase[] => {
    const read = readPayment(payload, requirements);
    return read.ok ? [{ payload, requirements, payment: read.payment }] : [];
  });
  if (purchases.length < 2) return purchases[0];
  // A version 1 payment names no asset. Its signature shows it, being made under the asset's
  // domain. A contract's signature shows nothing: there, the first is as good as any.
  for (const purchase of purchases) {
    const signer = await recoverPayer(purchase.payment);
    if (signer === purchase.payment.authorization.from) return purchase;
  }
  return purchases[0];
}

function candidatesV1(payload: PaymentPayloadV1, offer: Offer): PaymentRequirements[] {
  const network = parseNetwork(payload.network);
  const { to, value } = payload.payload.authorization;
  return offer
    .filter(({ versions }) => versions.v1)
    .map(({ requirements }) => requirements)
    .filter(
      (requirements) =>
        requirements.scheme === payload.scheme &&
        requirements.network === network &&
        isSameAddress(requirements.payTo, to) &&
        BigInt(value) >= BigInt(requirements.amount),
    );
}

function candidatesV2({ accepted }: PaymentPayloadV2, offer: Offer): PaymentRequirements[] {
  const found = offer.find(
    ({ requirements, versions }) =>
      versions.v2 &&
      requirements.scheme === accepted.scheme &&
      requirements.network === accepted.network &&
      requirements.amount === accepted.amount &&
      isSameAddress(requirements.asset, accepted.asset) &&
      isSameAddress(requirements.payTo, accepted.payTo) &&
      contains(accepted.extra, requirements.extra),
  );
  return found === undefined ? [] : [found.requirements];
}

function contains(
  extra: Record<string, unknown> | undefined,
  ours: Record<string, unknown> | undefined,
): boolean {
  return Object.entries(ours ?? {}).every(([name, value]) =>
    isDeepStrictEqual(extra?.[name], value),
  );
}
