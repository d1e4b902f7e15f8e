import { recoverTypedDataAddress } from "viem";
import { type Address, toLowerHex } from "./address.ts";
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
      signature: payment.signature,
    });
    return toLowerHex(signer);
  } catch {
    return undefined;
  }
}
