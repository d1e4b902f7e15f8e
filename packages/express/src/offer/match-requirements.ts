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

/** A payment, and what of the offer it means to fulfil. */
export interface Purchase {
  payload: PaymentPayload;
  requirements: PaymentRequirements;
  payment: Payment;
}

/**
 * Finds what a payment is for among what is offered to this request.
 *
 * @returns `undefined` when it is for nothing that is offered.
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
  // A version 1 payment names no asset. Its signature tells, being made under the asset's domain;
  // for a contract's signature, which tells nothing, the first is as good as any.
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
