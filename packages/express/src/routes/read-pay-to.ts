import { type Address, isWellFormedAddress } from "@coinslot/protocol";

/** Either the recipient, or its problem. */
export type ReadPayTo = { ok: true; payTo: Address } | { ok: false; problem: string };

/** Reads a recipient as the seller wrote it, or as the seller's function returned it. */
export function readPayTo(payTo: unknown): ReadPayTo {
  if (payTo === undefined || payTo === "") {
    return { ok: false, problem: "is missing: is the variable that holds the address set?" };
  }
  if (typeof payTo !== "string" || !isWellFormedAddress(payTo)) {
    return { ok: false, problem: "must be an address with a correct checksum" };
  }
  if (/^0x0{40}$/.test(payTo)) {
    return { ok: false, problem: "is the zero address: money sent there is lost" };
  }
  return { ok: true, payTo };
}
