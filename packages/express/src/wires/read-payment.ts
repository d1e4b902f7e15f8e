import type { IncomingMessage } from "node:http";
import { DecodeError } from "@coinslot/protocol";
import { malformedPayment, type Refusal } from "../refusals.ts";
import type { Presented, Wire } from "./wire.ts";

/** The payment that a request brings. */
export type ReadPayment =
  | { state: "absent" }
  /** `refusal`: its answer; `undefined`: 402, with a fresh offer. */
  | { state: "malformed"; refusal: Refusal | undefined }
  | ({ state: "read" } & Presented);

const absent: ReadPayment = { state: "absent" };

/** Reads the payment of a request, of any wire. A request brings one, once. */
export function readPayment(request: IncomingMessage, wires: readonly Wire[]): ReadPayment {
  let wire: Wire | undefined;
  let count = 0;
  for (const each of wires) {
    const ofWire = each.countPayments(request);
    if (ofWire === 0) continue;
    wire = each;
    count += ofWire;
  }
  if (wire === undefined) return absent;
  if (count > 1) {
    const refusal = malformedPayment("A request brings one payment header, once");
    return { state: "malformed", refusal };
  }
  try {
    return { state: "read", wire, credential: wire.read(request) };
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    return {
      state: "malformed",
      refusal: wire.refuse({ kind: "malformed", message: error.message }),
    };
  }
}
