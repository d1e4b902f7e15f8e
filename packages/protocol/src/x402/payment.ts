import { type Address, type Hex, toLowerHex } from "../money/address.ts";
import { type Network, parseNetwork } from "../money/network.ts";
import { type Authorization, type AuthorizationId, parseAuthorization } from "./authorization.ts";
import type { TokenDomain } from "./eip3009.ts";
import { freezeMessage, onceForFrozen } from "./frozen-message.ts";
import type { PaymentPayload } from "./payment-payload.ts";
import type { PaymentRequirements } from "./payment-requirements.ts";
import type { InvalidReason } from "./reason.ts";

/** Transfer method of a payment. The offer decides it, never the payload's members alone. */
export type PaymentKind = "eip3009";

/** A payment matched with the requirements that it means to fulfil, in the internal form. */
export interface Payment {
  kind: PaymentKind;
  x402Version: 1 | 2;
  id: AuthorizationId;
  network: Network;
  asset: Address;
  domain: TokenDomain;
  authorization: Authorization;
  signature: Hex;
  /** Required amount, in the token's smallest unit. */
  amountRequired: bigint;
  payTo: Address;
  maxTimeoutSeconds: number;
}

/** Either a payment, or the reason why the two messages do not make one. */
export type ReadPayment =
  | { ok: true; payment: Payment }
  | { ok: false; reason: InvalidReason; payer: Address };

/**
 * Matches a payload with requirements: same scheme, same network, a token with an EIP-712 domain.
 * Sends no request, checks no signature. In version 2 the payload repeats the terms that it
 * accepts. The signed data counts (value, EIP-712 domain, `to`): it shows a difference in amount,
 * asset or recipient.
 *
 * A payment is immutable. Frozen messages always yield the same payment object.
 */
export const readPayment: (
  payload: PaymentPayload,
  requirements: PaymentRequirements,
) => ReadPayment = onceForFrozen(holdAgainst);

function holdAgainst(payload: PaymentPayload, requirements: PaymentRequirements): ReadPayment {
  const authorization = parseAuthorization(payload.payload.authorization);
  const refuse = (reason: InvalidReason): ReadPayment => ({
    ok: false,
    reason,
    payer: authorization.from,
  });
  const scheme = payload.x402Version === 1 ? payload.scheme : payload.accepted.scheme;
  if (scheme !== "exact" || requirements.scheme !== "exact") return refuse("unsupported_scheme");
  const method = requirements.extra?.assetTransferMethod ?? "eip3009";
  if (method !== "eip3009") return refuse("unsupported_scheme");
  const named = payload.x402Version === 1 ? payload.network : payload.accepted.network;
  const network = parseNetwork(named);
  if (network === undefined) return refuse("invalid_network");
  if (network !== requirements.network) return refuse("invalid_exact_evm_network_mismatch");
  const domain = readDomain(requirements);
  if (domain === undefined) return refuse("invalid_exact_evm_missing_eip712_domain");
  const asset = toLowerHex(requirements.asset);
  return {
    ok: true,
    payment: freezeMessage({
      kind: "eip3009",
      x402Version: payload.x402Version,
      id: { network, asset, payer: authorization.from, nonce: authorization.nonce },
      network,
      asset,
      domain,
      authorization,
      signature: toLowerHex(payload.payload.signature),
      amountRequired: BigInt(requirements.amount),
      payTo: toLowerHex(requirements.payTo),
      maxTimeoutSeconds: requirements.maxTimeoutSeconds,
    }),
  };
}

function readDomain(requirements: PaymentRequirements): TokenDomain | undefined {
  const name = requirements.extra?.name;
  const version = requirements.extra?.version;
  if (typeof name !== "string" || typeof version !== "string") return undefined;
  if (name === "" || version === "") return undefined;
  return { name, version };
}
