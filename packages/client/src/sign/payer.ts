import { validateMnemonic } from "@scure/bip39";
import type { LocalAccount } from "viem";
import { english, mnemonicToAccount, privateKeyToAccount } from "viem/accounts";

/**
 * The signing account: its address, and EIP-712 signing as in viem's accounts. `signTransaction` is
 * for the withdrawal of a channel alone.
 */
export type PayingAccount = Pick<LocalAccount, "address" | "signTypedData"> &
  Partial<Pick<LocalAccount, "signTransaction">>;

/**
 * Exactly one way to sign. Secrets may be `undefined` so that `process.env` can be passed. That is
 * reported as a problem when the fetch is created.
 */
export type PayerOptions =
  | { account: PayingAccount; seedPhrase?: undefined; privateKey?: undefined }
  | {
      /** BIP-39, in English words. */
      seedPhrase: string | undefined;
      /** The last step of `m/44'/60'/0'/0/i`. Default 0. */
      accountIndex?: number | undefined;
      account?: undefined;
      privateKey?: undefined;
    }
  | {
      /** 32 bytes in hex. */
      privateKey: string | undefined;
      account?: undefined;
      seedPhrase?: undefined;
    };

/** The account that the options name. Without one, adds to `problems` and returns `undefined`. */
export function readPayer(options: PayerOptions, problems: string[]): PayingAccount | undefined {
  const { account, seedPhrase, privateKey } = options;
  const given = [account, seedPhrase, privateKey].filter((each) => each !== undefined);
  if (given.length !== 1) {
    const found = given.length === 0 ? "none is set" : "more than one is set";
    problems.push(`give exactly one of account, seedPhrase and privateKey: ${found}`);
    return undefined;
  }
  if (account !== undefined) return account;
  // The errors of the libraries repeat the secret, or words of it, so they are dropped.
  try {
    if (privateKey !== undefined) return deriveFromKey(privateKey);
    if (seedPhrase !== undefined) {
      return deriveFromPhrase(seedPhrase, "accountIndex" in options ? options.accountIndex : 0);
    }
  } catch {
    // Reported below.
  }
  problems.push(
    privateKey !== undefined
      ? "privateKey is not a valid key of 32 bytes in hex"
      : "seedPhrase is not a valid BIP-39 seed phrase (a word is wrong or missing), or accountIndex is invalid",
  );
  return undefined;
}

function deriveFromKey(privateKey: string): PayingAccount {
  const digits = /^(?:0x)?([0-9a-fA-F]{64})$/.exec(privateKey.trim())?.[1];
  return privateKeyToAccount(`0x${digits}`);
}

function deriveFromPhrase(seedPhrase: string, addressIndex = 0): PayingAccount {
  const words = seedPhrase.normalize("NFKD").trim().split(/\s+/).join(" ").toLowerCase();
  // Derivation accepts any words, and a mistyped phrase would be an empty wallet.
  if (!validateMnemonic(words, english)) throw new RangeError("The checksum is wrong");
  return mnemonicToAccount(words, { addressIndex });
}
