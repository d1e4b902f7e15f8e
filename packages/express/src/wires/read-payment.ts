import { DecodeError } from "@coinslot/protocol";
import type { Request } from "express";
import type { Offer } from "../offer/offer.ts";
import { malformedPayment, type Refusal } from "../refusals.ts";
import { PaymentFault, type Presented, type Wire } from "./wire.ts";

/** The payment that a request brings. */
export type ReadPayment =
  | { state: "absent" }
  /** `refusal`: its answer; `undefined`: 402, with the error and a fresh offer. */
  | { state: "malformed"; refusal: Refusal | undefined; error: string }
  | ({ state: "read" } & Presented);

const malformed = "invalid_payload";
const absent: ReadPayment = { state: "absent" };

/** Reads the payment of a request, of any wire. A request brings one, once. */
export function readPayment(
  request: Request,
  { wires, offer }: { wires: readonly Wire[]; offer: Offer },
): ReadPayment {
  let wire: Wire | undefined;
  let count = 0;
  for (const each of wires) {
    const ofWire = each.countPayments(request);
    if (ofWire === 0 || each.sells?.(offer) === false) continue;
    wire = each;
    count += ofWire;
  }
  if (wire === undefined) return absent;
  if (count > 1) {
    const refusal = malformedPayment("A request brings one payment header, once");
    return { state: "malformed", refusal, error: malformed };
  }
  try {
    return { state: "read", wire, credential: wire.read(request) };
  } catch (error) {
    if (error instanceof PaymentFault) {
      const { reason } = error;
      const refusal = wire.refuse({ kind: "invalid", reason });
      return { state: "malformed", refusal, error: reason };
    }
    if (!(error instanceof DecodeError)) throw error;
    const refusal = wire.refuse({ kind: "malformed", message: error.message });
    return { state: "malformed", refusal, error: malformed };
  }
}
