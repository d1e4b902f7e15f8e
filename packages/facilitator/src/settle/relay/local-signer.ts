import type { Hex } from "@coinslot/protocol";
import { type LocalAccount, parseSignature, serializeTransaction } from "viem";
import { keccak256 } from "../../evm/keccak.ts";
import type { RelayerSigner } from "./relayer-signer.ts";

/** Account whose key is in this process. */
export type KeyedAccount = Pick<LocalAccount, "address"> & {
  sign(options: { hash: Hex }): Promise<Hex>;
};

/**
 * Signs like viem's own `signTransaction`, with the native digest. The call data of a full batch is
 * 17 kB: viem hashes it in JavaScript, which took 5% of a paid GET.
 */
export function createLocalSigner(account: KeyedAccount): RelayerSigner {
  return {
    address: account.address,
    async signTransaction(transaction) {
      const unsigned = Buffer.from(serializeTransaction(transaction).slice(2), "hex");
      const hash: Hex = `0x${Buffer.from(keccak256(unsigned)).toString("hex")}`;
      return serializeTransaction(transaction, parseSignature(await account.sign({ hash })));
    },
  };
}
