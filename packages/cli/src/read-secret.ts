import { readFileSync } from "node:fs";
import type { Hex } from "@coinslot/protocol";
import { isHex, type LocalAccount } from "viem";
import { mnemonicToAccount, privateKeyToAccount } from "viem/accounts";
import { UsageError } from "./exit-code.ts";
import type { Terminal } from "./terminal.ts";

/**
 * Reads a secret from the environment: from the variable of this name, or from the file that
 * `<name>_FILE` names. Secrets are no options, since options are seen by everybody on the machine.
 */
function readSecret(env: Terminal["env"], name: string): string | undefined {
  const direct = env[name];
  const file = env[`${name}_FILE`];
  if (direct && file) throw new UsageError(`Set ${name} or ${name}_FILE, not both.`);
  if (!file) return direct || undefined;
  try {
    return readFileSync(file, "utf8").trim();
  } catch (cause) {
    throw new UsageError(`The file that ${name}_FILE names cannot be read.`, { cause });
  }
}

/**
 * The wallet of the person who runs the command, from `WALLET_SEED_PHRASE` or `WALLET_PRIVATE_KEY`.
 *
 * @returns `undefined` when neither is set
 * @throws UsageError which never repeats the secret
 */
export function readWallet(env: Terminal["env"]): LocalAccount | undefined {
  const seedPhrase = readSecret(env, "WALLET_SEED_PHRASE");
  const privateKey = readSecret(env, "WALLET_PRIVATE_KEY");
  if (seedPhrase && privateKey) {
    throw new UsageError("Set WALLET_SEED_PHRASE or WALLET_PRIVATE_KEY, not both.");
  }
  try {
    if (seedPhrase) return mnemonicToAccount(seedPhrase);
    if (privateKey) return privateKeyToAccount(asHex(privateKey));
    return undefined;
  } catch {
    const name = seedPhrase ? "WALLET_SEED_PHRASE" : "WALLET_PRIVATE_KEY";
    throw new UsageError(`${name} is no valid ${seedPhrase ? "seed phrase" : "private key"}.`);
  }
}

function asHex(text: string): Hex {
  const hex = text.startsWith("0x") ? text : `0x${text}`;
  if (!isHex(hex)) throw new TypeError("not hexadecimal");
  return hex;
}
