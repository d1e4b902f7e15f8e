import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { type KeyStore, type KeyWish, openKeyStore, type StoredKey } from "@coinslot/indexer";
import { isDatabaseError, openDatabase } from "@coinslot/storage";
import { describeIndexerFault } from "./metered-indexer.ts";
import { ServiceStartError } from "./service-start-error.ts";

/** Output of the commands on keys: `out` for programs, `note` for people. */
export interface CommandOutput {
  out(line: string): void;
  note(line: string): void;
}

/** A wrong call of a command. */
export class KeysUsageError extends Error {
  override readonly name = "KeysUsageError";
}

export const keysUsage = `  keys create --owner <name> [--label <words>] [--ttl <30d, 12h, 90m, 45s>]
              [--max <requests> --time-window <10s>]   raises the limits of this key
  keys list [--owner <name>] [--json]
  keys revoke <hashedKey>`;

/**
 * Runs `keys create|list|revoke` on the database of the service, which may run meanwhile.
 *
 * @throws KeysUsageError; ServiceStartError where the database cannot be used
 */
export async function runKeysCommand(
  args: readonly string[],
  { databaseUrl, output }: { databaseUrl: string; output: CommandOutput },
): Promise<void> {
  const command = readCommand(args);
  // A lookup of a key is no reason to make a database, and a missing one is often misnamed.
  if (args[0] !== "create") refuseAbsent(databaseUrl);
  const readOnly = args[0] === "list";
  try {
    const database = await openDatabase<Record<string, never>>({ url: databaseUrl, readOnly });
    try {
      await command(await openKeyStore(database, { readOnly }), output);
    } finally {
      await database.close();
    }
  } catch (error) {
    if (!isDatabaseError(error)) throw error;
    const failed = `The keys could not be ${readOnly ? "read" : "changed"}`;
    throw new ServiceStartError([describeIndexerFault(error)], { cause: error, failed });
  }
}

/** @throws KeysUsageError where the file of a SQLite database is not there */
function refuseAbsent(databaseUrl: string): void {
  const path = /^sqlite:(?:\/\/)?(.+)$/.exec(databaseUrl)?.[1];
  if (path === undefined || path === ":memory:" || existsSync(path)) return;
  throw new KeysUsageError(
    `The database ${path} does not exist yet: the service creates it, or keys create. Does INDEXER_DATABASE name your service's?`,
  );
}

type Command = (keys: KeyStore, output: CommandOutput) => Promise<void>;

function readCommand([name, ...args]: readonly string[]): Command {
  switch (name) {
    case "create":
      return createKey(readWish(args));
    case "list":
      return listKeys(readOptions(args, { owner: "text", json: "flag" }));
    case "revoke":
      return revokeKey(args);
    default:
      throw new KeysUsageError(
        `keys takes create, list or revoke, not ${JSON.stringify(name ?? "")}`,
      );
  }
}

function createKey(wish: KeyWish): Command {
  return async function create(keys, { out, note }) {
    const { key, stored } = await keys.create(wish);
    note(`A key of ${stored.owner}, shown this one time; its hash is ${stored.hashedKey}:`);
    out(key);
  };
}

function listKeys({ owner, json }: Options): Command {
  return async function list(keys, { out, note }) {
    const found = await keys.list(owner);
    if (json !== undefined) out(JSON.stringify(found, null, 2));
    else if (found.length === 0) note("No keys.");
    else for (const key of found) out(describeKey(key));
  };
}

function revokeKey([hashedKey, ...others]: readonly string[]): Command {
  if (hashedKey === undefined || others.length > 0) {
    throw new KeysUsageError("keys revoke takes one hashed key, as keys list shows it");
  }
  return async function revoke(keys, { note }) {
    if (!(await keys.revoke(hashedKey))) throw new KeysUsageError(`There is no key ${hashedKey}`);
    note(`Revoked ${hashedKey}.`);
  };
}

function describeKey(key: StoredKey): string {
  const { hashedKey, owner, label, ttlMs, createdAtMs, lastActiveAtMs, limit } = key;
  const day = (ms: number) => new Date(ms).toISOString().slice(0, 16).replace("T", " ");
  return [
    hashedKey,
    owner,
    label ?? "-",
    `created ${day(createdAtMs)}`,
    `active ${day(lastActiveAtMs)}`,
    ttlMs === 0 ? "never expires" : `expires ${day(createdAtMs + ttlMs)}`,
    limit === undefined ? "usual limits" : `${limit.max} per ${limit.windowMs} ms`,
  ].join("  ");
}

function readWish(args: readonly string[]): KeyWish {
  const options = readOptions(args, {
    owner: "text",
    label: "text",
    ttl: "text",
    max: "text",
    "time-window": "text",
  });
  const { owner, label, ttl, max, "time-window": timeWindow } = options;
  if (owner === undefined || owner === "")
    throw new KeysUsageError("keys create needs --owner <name>");
  if ((max === undefined) !== (timeWindow === undefined)) {
    throw new KeysUsageError("--max and --time-window go together");
  }
  if (max !== undefined && !/^[1-9][0-9]{0,8}$/.test(max)) {
    throw new KeysUsageError(`--max takes a number of requests, not ${JSON.stringify(max)}`);
  }
  return {
    owner,
    label,
    ttlMs: ttl === undefined ? 0 : readDuration("--ttl", ttl),
    limit:
      max === undefined || timeWindow === undefined
        ? undefined
        : { max: Number(max), windowMs: readDuration("--time-window", timeWindow) },
  };
}

const unitsMs: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** @throws KeysUsageError */
export function readDuration(flag: string, text: string): number {
  const [, count, unit = ""] = /^([1-9][0-9]{0,5})([smhd])$/.exec(text) ?? [];
  const unitMs = unitsMs[unit];
  if (count !== undefined && unitMs !== undefined) return Number(count) * unitMs;
  throw new KeysUsageError(
    `${flag} takes a time such as 30d, 12h, 90m or 45s, not ${JSON.stringify(text)}`,
  );
}

type Options = Readonly<Record<string, string | undefined>>;

/** A flag that is set has the value "true". @throws KeysUsageError */
function readOptions(args: readonly string[], kinds: Record<string, "text" | "flag">): Options {
  const options = Object.fromEntries(
    Object.entries(kinds).map(([name, kind]) => [
      name,
      { type: kind === "flag" ? ("boolean" as const) : ("string" as const) },
    ]),
  );
  try {
    const { values } = parseArgs({ args: [...args], options, allowPositionals: false });
    return Object.fromEntries(
      Object.entries(values).map(([name, value]) => [
        name,
        value === undefined ? value : String(value),
      ]),
    );
  } catch (error) {
    throw new KeysUsageError(error instanceof Error ? error.message : String(error));
  }
}
