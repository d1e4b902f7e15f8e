import type { LocalAccount } from "viem";
import type { PayingAccount } from "../sign/payer.ts";

/** An account that counts its signatures. */
export interface CountingAccount extends PayingAccount {
  signatures(): number;
}

/**
 * Wraps an account so that every signature is counted, at the moment in which it is asked for.
 * `beforeSigning` may look around then, or refuse by throwing.
 */
export function countSignatures(
  account: LocalAccount,
  beforeSigning?: () => Promise<void>,
): CountingAccount {
  let count = 0;
  return {
    address: account.address,
    signTypedData: async (typedData) => {
      count += 1;
      await beforeSigning?.();
      return account.signTypedData(typedData);
    },
    signatures: () => count,
  };
}
