import {
  compactSignatureToSignature,
  parseCompactSignature,
  recoverTypedDataAddress,
  serializeSignature,
} from "viem";
import { type Address, type Hex, toLowerHex } from "../money/address.ts";
import { transferTypedData } from "./eip3009.ts";
import type { Payment } from "./payment.ts";

/**
 * Who signed a payment, if it was signed under the domain of the asset that it is held against. It
 * tells apart the assets that a version 1 payment may mean, since that names none; whether the
 * payment is good, the facilitator says. A contract's signature recovers to nobody of meaning.
 *
 * @returns lower case; `undefined` when the signature recovers to nobody.
 */
export async function recoverPayer(payment: Payment): Promise<Address | undefined> {
  try {
    const signer = await recoverTypedDataAddress({
      ...transferTypedData(payment),
      signature: withRecovery(payment.signature),
    });
    return toLowerHex(signer);
  } catch {
    return undefined;
  }
}

/** Writes the 64 bytes of EIP-2098 as the 65 of which viem recovers. */
function withRecovery(signature: Hex): Hex {
  if (signature.length !== 2 + 128) return signature;
  return serializeSignature(compactSignatureToSignature(parseCompactSignature(signature)));
}
