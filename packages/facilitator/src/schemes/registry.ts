import type {
  PaymentKind,
  PaymentPayload,
  PaymentRequirements,
  ReadPayment,
} from "@coinslot/protocol";
import { exactScheme } from "./exact/exact-scheme.ts";
import type { Scheme } from "./scheme.ts";

/** Schemes whose payments the engine settles. No other file of the engine imports one. */
const schemes: Readonly<Record<PaymentKind, Scheme>> = { eip3009: exactScheme };

/** The scheme of a payment, a claim or a row of the ledger. */
export function schemeOf({ kind }: { kind: PaymentKind }): Scheme {
  return schemes[kind];
}

/** Reads a payload by the scheme for which the requirements ask. */
export function readClaim(payload: PaymentPayload, requirements: PaymentRequirements): ReadPayment {
  return exactScheme.read(payload, requirements);
}
