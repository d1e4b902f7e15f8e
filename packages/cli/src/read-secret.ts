import { readFileSync } from "node:fs";
import { describeUnreadable } from "@coinslot/hosting/environment";
import type { Hex } from "@coinslot/protocol";
import { validateMnemonic } from "@scure/bip39";
import { isHex, type LocalAccount } from "viem";
import { english, mnemonicToAccount, privateKeyToAccount } from "viem/accounts";
import { UsageError } from "./exit-code.ts";
import type { Terminal } from "./terminal.ts";

/** Prefix of an account's variables. */
export type AccountName = "WALLET" | "FACILITATOR" | "SELLER" | "FLOAT";

/**
 * Reads a secret from the environment: from the variable of this name, or from the file that
 * `<name>_FILE` names. Secrets are no options, since the machine's process list shows those.
 *
 * @throws UsageError when both are set, or the file cannot be read
 */
export function readSecret(env: Terminal["env"], name: string): string | undefined {
  const direct = env[name];
  const file = env[`${name}_FILE`];
  if (direct && file) throw new UsageError(`Set ${name} or ${name}_FILE, not both.`);
  if (!file) return direct || undefined;
  try {
    return readFileSync(file, "utf8").trim();
  } catch (cause) {
    throw new UsageError(`${name}_FILE: ${describeUnreadable(file, cause)}.`, { cause });
  }
}

/**
 * Reads the key of a service elsewhere, as `readSecret`. The .env file of a folder may come from
 * anywhere: its URL gets no file of this machine.
 *
 * @param options.url the variable of the service's URL
 * @throws UsageError as `readSecret`, and where that file names the key's file
 */
export function readServiceKey(
  { env, envFile }: Pick<Terminal, "env" | "envFile">,
  name: string,
  { url }: { url: string },
): string | undefined {
  if (envFile?.isOfFolder && envFile.values[`${name}_FILE`] !== undefined) {
    throw new UsageError(
      `${name}_FILE is not taken from a folder's .env file: set it in the environment, together with ${url}.`,
    );
  }
  return readSecret(env, name);
}

/** The wallet of the person who runs the command: `readAccount` for `WALLET`. */
export function readWallet(env: Terminal["env"]): LocalAccount | undefined {
  return readAccount(env, "WALLET");
}

/**
 * An account from `<name>_SEED_PHRASE` or `<name>_PRIVATE_KEY`.
 *
 * @returns `undefined` when neither is set
 * @throws UsageError which never repeats the secret
 */
export function readAccount(env: Terminal["env"], name: AccountName): LocalAccount | undefined {
  const seedPhrase = readSecret(env, `${name}_SEED_PHRASE`);
  const privateKey = readSecret(env, `${name}_PRIVATE_KEY`);
  if (seedPhrase && privateKey) {
    throw new UsageError(`Set ${name}_SEED_PHRASE or ${name}_PRIVATE_KEY, not both.`);
  }
  try {
    if (seedPhrase) return fromSeedPhrase(seedPhrase);
    if (privateKey) return privateKeyToAccount(asHex(privateKey));
    return undefined;
  } catch {
    throw new UsageError(
      seedPhrase
        ? `${name}_SEED_PHRASE is not a valid seed phrase: a word is wrong, missing, or in the wrong place.`
        : `${name}_PRIVATE_KEY is not a valid private key.`,
    );
  }
}

function fromSeedPhrase(text: string): LocalAccount {
  const words = text.normalize("NFKD").trim().split(/\s+/).join(" ").toLowerCase();
  // Derivation accepts any words, and a mistyped phrase would be an empty wallet.
  if (!validateMnemonic(words, english)) throw new RangeError("The checksum is wrong");
  return mnemonicToAccount(words);
}

function asHex(text: string): Hex {
  const hex = text.startsWith("0x") ? text : `0x${text}`;
  if (!isHex(hex)) throw new TypeError("not hexadecimal");
  return hex;
}
