import type { Hex } from "@coinslot/protocol";
import type { LocalAccount } from "viem";
import { encodeTransaction } from "./encode-transaction.ts";
import type { RelayerSigner } from "./relayer-signer.ts";

/** Account whose key is in this process. */
export type KeyedAccount = Pick<LocalAccount, "address"> & {
  sign(options: { hash: Hex }): Promise<Hex>;
};

/** Signs the bytes that viem's `signTransaction` signs. */
export function createLocalSigner(account: KeyedAccount): RelayerSigner {
  return {
    address: account.address,
    async signTransaction(transaction) {
      const { hash, signedWith } = encodeTransaction(transaction);
      const signature = await account.sign({ hash });
      return signedWith(Buffer.from(signature.slice(2), "hex"));
    },
  };
}
