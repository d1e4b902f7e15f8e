import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { readRegularFile } from "@coinslot/hosting/environment";
import { UsageError } from "../exit-code.ts";
import { printableWhole } from "../pay/printable.ts";
import { readWallet } from "../read-secret.ts";
import type { Terminal } from "../terminal.ts";

/** Settings of a folder's .env file that decide the flow of money: nodes, tokens and keys. */
export interface FolderSettings {
  /** The .env file. */
  path: string;
  /** Changes with each of the settings, and with the files that they name. */
  hash: string;
  /** For people, by name: without keys, and URLs without the parts that may be a key. */
  shown: Readonly<Record<string, string>>;
  /**
   * The environment with the contents of those files: a change after the question has no effect.
   */
  env: Terminal["env"];
}

const deciding =
  /^(?:COINSLOT_NETWORK|COINSLOT_TOKENS|BRIDGE_(?:TARGET_)?RPC_URL|(?:COINSLOT_RPC_URL(?:_[0-9]+)?|WALLET_(?:SEED_PHRASE|PRIVATE_KEY))(?:_FILE)?)$/;

/**
 * `undefined`: the folder decides nothing. A file named by `COINSLOT_ENV_FILE` counts as chosen.
 *
 * @throws UsageError when a file that a setting names cannot be read, or is not all that names its
 * subject
 */
export function readFolderSettings({ env, envFile }: Terminal): FolderSettings | undefined {
  if (envFile === undefined || !envFile.isOfFolder) return undefined;
  const entries = Object.entries(envFile.values)
    .filter(([name, value]) => deciding.test(name) && value !== "")
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]): Entry => ({ name, value, content: readContent(name, value, env) }));
  if (entries.length === 0) return undefined;
  const path = realpathSync(envFile.path);
  const agreed = withContents(env, entries);
  return {
    path,
    hash: createHash("sha256")
      .update(
        JSON.stringify([path, entries.map(({ name, value, content }) => [name, value, content])]),
      )
      .digest("hex"),
    shown: Object.fromEntries(entries.map((entry) => [entry.name, describe(entry, agreed)])),
    env: agreed,
  };
}

interface Entry {
  name: string;
  value: string;
  /** Content of the file that it names; `undefined`: it names none. */
  content: string | undefined;
}

function readContent(name: string, path: string, env: Terminal["env"]): string | undefined {
  if (!name.endsWith("_FILE")) return undefined;
  const plain = withoutFile(name);
  if (env[plain]) throw new UsageError(`Set ${plain} or ${name}, not both.`);
  try {
    return readRegularFile(path).trim();
  } catch (cause) {
    throw new UsageError(`The file that ${name} names cannot be read.`, { cause });
  }
}

function withContents(env: Terminal["env"], entries: readonly Entry[]): Terminal["env"] {
  const agreed = { ...env };
  for (const { name, content } of entries) {
    if (content === undefined) continue;
    agreed[name] = undefined;
    agreed[withoutFile(name)] = content;
  }
  return agreed;
}

function withoutFile(name: string): string {
  return name.replace(/_FILE$/, "");
}

function describe({ name, value, content }: Entry, agreed: Terminal["env"]): string {
  const from = content === undefined ? "" : ` from ${printableWhole(value)}`;
  if (name.startsWith("WALLET_")) {
    return `the account ${readWallet(agreed)?.address ?? "of no key"}${from}`;
  }
  if (!name.includes("_URL")) return printableWhole(value);
  return `${(content ?? value).split(",").map(originOf).join(", ")}${from}`;
}

/**
 * Strips the parts that may be a key. The scheme stays: over plain HTTP, a host on the way could
 * answer in the node's place.
 */
function originOf(text: string): string {
  const url = text.trim();
  if (!URL.canParse(url)) return "no URL";
  const { protocol, host } = new URL(url);
  return printableWhole(protocol === "https:" ? host : `${protocol}//${host}`);
}
