import type { LocalAccount } from "viem";
import { mnemonicToAccount, privateKeyToAccount } from "viem/accounts";

/** Who signs: its address, and EIP-712 signing as viem's accounts offer it. */
export type PayingAccount = Pick<LocalAccount, "address" | "signTypedData">;

/** Exactly one way to sign. */
export type PayerOptions =
  | { account: PayingAccount; seedPhrase?: undefined; privateKey?: undefined }
  | {
      /** BIP-39. */
      seedPhrase: string;
      /** The last step of `m/44'/60'/0'/0/i`. Default 0. */
      accountIndex?: number | undefined;
      account?: undefined;
      privateKey?: undefined;
    }
  | { privateKey: `0x${string}`; account?: undefined; seedPhrase?: undefined };

/** The account that the options name; tells `problems` and returns `undefined` if there is none. */
export function readPayer(options: PayerOptions, problems: string[]): PayingAccount | undefined {
  const { account, seedPhrase, privateKey } = options;
  const given = [account, seedPhrase, privateKey].filter((each) => each !== undefined);
  if (given.length !== 1) {
    problems.push("give exactly one of account, seedPhrase and privateKey");
    return undefined;
  }
  if (account !== undefined) return account;
  // The errors of the libraries repeat the secret, or words of it: they are not passed on.
  try {
    if (privateKey !== undefined) return privateKeyToAccount(privateKey);
    if (seedPhrase !== undefined) {
      const addressIndex = "accountIndex" in options ? (options.accountIndex ?? 0) : 0;
      return mnemonicToAccount(seedPhrase, { addressIndex });
    }
  } catch {
    // Told below.
  }
  problems.push(
    privateKey !== undefined
      ? "privateKey is not 0x and 64 hex digits of a valid key"
      : "seedPhrase is not a valid BIP-39 seed phrase, or accountIndex no valid index",
  );
  return undefined;
}
