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
 * Signer of a payment, if it was signed under the domain of the given requirements' asset. A
 * version 1 payment names no asset, and this distinguishes the candidates. The facilitator decides
 * whether the payment is valid. A contract's signature recovers to a meaningless address.
 *
 * @returns lower case; `undefined` when the signature recovers to no address.
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

/** Converts the 64 bytes of EIP-2098 to the 65 from which viem recovers. */
function withRecovery(signature: Hex): Hex {
  if (signature.length !== 2 + 128) return signature;
  return serializeSignature(compactSignatureToSignature(parseCompactSignature(signature)));
}
