import type { Hex, PrivateKeyAccount } from "viem";
import { bytesToHex } from "viem";
import { type HDKey, mnemonicToAccount, privateKeyToAccount } from "viem/accounts";

/**
 * The seed phrase that every development chain uses. It is public: never send anything of value to
 * its accounts.
 */
export const devSeedPhrase = "test test test test test test test test test test test junk";

/**
 * An account of the devnet. It signs locally; the chain also signs for it when asked for by its
 * address.
 */
export type DevAccount = PrivateKeyAccount & { privateKey: Hex };

export type DevAccounts = {
  /** m/44'/60'/0'/0/0: the default signer of the client */
  deployer: DevAccount;
  /** m/44'/60'/0'/0/1 */
  relayer: DevAccount;
  /** m/44'/60'/0'/0/2 */
  seller: DevAccount;
  /** m/44'/60'/0'/0/3 */
  buyer: DevAccount;
  /** m/44'/60'/0'/0/4 and those that follow */
  others: DevAccount[];
};

/** The first `count` accounts of the development seed phrase, at least four. */
export function createDevAccounts(count: number): DevAccounts {
  const [deployer, relayer, seller, buyer, ...others] = Array.from({ length: count }, (_, index) =>
    devAccount(index),
  );
  if (!deployer || !relayer || !seller || !buyer) {
    throw new RangeError(`A devnet has at least 4 accounts, not ${count}.`);
  }
  return { deployer, relayer, seller, buyer, others };
}

// Deriving costs milliseconds for each key: once per process is enough.
const derived: DevAccount[] = [];
let branch: HDKey | undefined;

/** The account of the development seed phrase at `m/44'/60'/0'/0/<index>`. */
export function devAccount(index: number): DevAccount {
  const known = derived[index];
  if (known) return known;
  branch ??= mnemonicToAccount(devSeedPhrase, { path: "m/44'/60'/0'/0" }).getHdKey();
  const { privateKey } = branch.deriveChild(index);
  if (!privateKey) throw new Error(`The seed phrase has no private key at index ${index}.`);
  const account = {
    ...privateKeyToAccount(bytesToHex(privateKey)),
    privateKey: bytesToHex(privateKey),
  };
  derived[index] = account;
  return account;
}
