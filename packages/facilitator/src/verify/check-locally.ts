import {
  type Address,
  type Hex,
  type Network,
  type Payment,
  type PaymentRequirements,
  readFacilitatorArguments,
  type VerifyOptions,
} from "@coinslot/protocol";
import { zeroAddress } from "viem";
import { readClaim, schemeOf } from "../schemes/registry.ts";
import { refuse } from "./refuse.ts";
import type { LocalVerdict, Refused } from "./verdict.ts";

/** The tokens and times of one network, as far as local checks need them. */
export interface ServedNetwork {
  /** The tokens that are served, in lower case; every token when absent. */
  assets?: ReadonlySet<Address> | undefined;
  /** Longest usual time between two blocks. */
  blockTimeSeconds?: number | undefined;
}

export interface LocalCheck {
  paymentPayload: unknown;
  paymentRequirements: unknown;
  served: ReadonlyMap<Network, ServedNetwork>;
  isSignedByPayer: (payment: Payment) => boolean;
  /** Unix milliseconds. */
  now: number;
  options?: VerifyOptions | undefined;
}

/**
 * The checks without an RPC call, cheap ones first. The first fault is the one that is returned.
 */
export function checkLocally(check: LocalCheck): LocalVerdict {
  const read = readFacilitatorArguments(check.paymentPayload, check.paymentRequirements);
  if (!read.ok) return refuse(read.reason, { message: read.message });
  const { paymentPayload, paymentRequirements } = read.request;

  const held = readClaim(paymentPayload, paymentRequirements);
  const network = check.served.get(paymentRequirements.network);
  if (!held.ok) {
    // A network that is not served comes before a domain that is missing.
    const isAboutDomain = held.reason === "invalid_exact_evm_missing_eip712_domain";
    const reason = isAboutDomain && network === undefined ? "invalid_network" : held.reason;
    return refuse(reason, { payer: held.payer });
  }
  const { payment } = held;
  const payer = payment.authorization.from;
  if (network === undefined) return refuse("invalid_network", { payer });

  const unpayable = checkRequirements(payment, paymentRequirements, network);
  if (unpayable !== undefined) return unpayable;
  const { check: checkClaim, reasons } = schemeOf(payment);
  const reason = checkClaim(payment, {
    now: check.now,
    handlerTimeoutSeconds: check.options?.handlerTimeoutSeconds,
    blockTimeSeconds: network.blockTimeSeconds,
  });
  if (reason !== undefined) return refuse(reason, { payer });
  if (payer === payment.payTo) {
    const message = "The payer would pay itself.";
    return refuse(reasons.recipientMismatch, { payer, message });
  }
  if (isPredeploySignature(payment.signature)) {
    const message = "Signatures of accounts that are not deployed yet (EIP-6492) are not served.";
    return refuse(reasons.signature, { payer, message });
  }
  return { isValid: true, payer, payment, isSignedByPayer: () => check.isSignedByPayer(payment) };
}

/** A seller's possible mistake: an offer that can be fulfilled and is worth nothing. */
function checkRequirements(
  { asset, payTo, amountRequired, authorization }: Payment,
  requirements: PaymentRequirements,
  { assets }: ServedNetwork,
): Refused | undefined {
  const payer = authorization.from;
  const refuseBecause = (message: string) =>
    refuse("invalid_payment_requirements", { payer, message });
  if (assets !== undefined && !assets.has(asset)) {
    return refuseBecause(`The asset ${requirements.asset} is not served here.`);
  }
  if (payTo === zeroAddress) return refuseBecause("payTo is the zero address.");
  if (amountRequired === 0n) return refuseBecause("The amount is zero.");
  return undefined;
}

/** EIP-6492: a wrapper that ends in this word asks for a contract to be deployed first. */
const predeployMagic = "6492".repeat(16);

function isPredeploySignature(signature: Hex): boolean {
  return signature.endsWith(predeployMagic);
}
