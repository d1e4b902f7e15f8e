import { createHash } from "node:crypto";
import type { Claim } from "../schemes/scheme.ts";

/** Signatures of keys are compared as they are; a longer one is hashed, to bound the memory. */
const maxPlainSignature = 2 + 130;

/**
 * Key of a simulation: the whole authorization and its signature. Equal keys have equal results at
 * one moment.
 */
export function simulationKey({ kind, id, authorization, signature }: Claim): string {
  const { network, asset } = id;
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const signed =
    signature.length <= maxPlainSignature
      ? signature
      : createHash("sha256").update(signature).digest("base64");
  return `${nonce}/${from}/${to}/${value}/${validAfter}/${validBefore}/${asset}/${network}/${kind}/${signed}`;
}
