import { createHash } from "node:crypto";
import { readFileSync, realpathSync } from "node:fs";
import { printable } from "../pay/printable.ts";
import { readWallet } from "../read-secret.ts";
import type { Terminal } from "../terminal.ts";

/** Settings of a folder's .env file that decide whose money goes where: nodes, tokens and keys. */
export interface FolderSettings {
  /** The .env file. */
  path: string;
  /** Changes with each of the settings, and with the files that they name. */
  hash: string;
  /** For people, by name: without keys, and URLs without what may be a key in them. */
  shown: Readonly<Record<string, string>>;
}

const deciding =
  /^(?:COINSLOT_(?:NETWORK|RPC_URL(?:_[0-9]+)?|TOKENS)|BRIDGE_(?:TARGET_)?RPC_URL|WALLET_(?:SEED_PHRASE|PRIVATE_KEY))(?:_FILE)?$/;

/** `undefined`: the folder decides nothing. A file that `COINSLOT_ENV_FILE` names was chosen already. */
export function readFolderSettings({ env, envFile }: Terminal): FolderSettings | undefined {
  if (envFile === undefined || !envFile.isOfFolder) return undefined;
  const entries = Object.entries(envFile.values)
    .filter(([name, value]) => deciding.test(name) && value !== "")
    .sort(([a], [b]) => (a < b ? -1 : 1));
  if (entries.length === 0) return undefined;
  const path = realpathSync(envFile.path);
  const contents = entries.map(([name, value]) =>
    name.endsWith("_FILE") ? [name, value, readContent(value)] : [name, value],
  );
  return {
    path,
    hash: createHash("sha256")
      .update(JSON.stringify([path, contents]))
      .digest("hex"),
    shown: Object.fromEntries(entries.map(([name, value]) => [name, describe(name, value, env)])),
  };
}

function describe(name: string, value: string, env: Terminal["env"]): string {
  const from = name.endsWith("_FILE") ? ` from ${printable(value)}` : "";
  if (name.startsWith("WALLET_")) return `the account ${readWallet(env)?.address}${from}`;
  if (!name.includes("_URL")) return printable(value);
  const urls = from === "" ? value : readContent(value);
  return `${urls.split(",").map(hostOf).join(", ")}${from}`;
}

function hostOf(text: string): string {
  const url = text.trim();
  return URL.canParse(url) ? printable(new URL(url).host) : "no URL";
}

/** A file that cannot be read is reported where it is needed. */
function readContent(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return "";
  }
}
