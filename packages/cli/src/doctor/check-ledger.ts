import { accessSync, constants, existsSync } from "node:fs";
import { dirname } from "node:path";
import { openLedgerReader, type Stop } from "@coinslot/facilitator";
import { type DatabaseError, isDatabaseError, lockDatabaseFile } from "@coinslot/storage";
import { UsageError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import { isLedgerAbsent, ledgerFile, readLedgerUrl } from "../ledger-url.ts";
import { showUnsafe } from "../safe-text.ts";
import type { Terminal } from "../terminal.ts";
import type { Check } from "./check.ts";

const topic = "ledger";

/** State of the ledger: access, content, and holder of its lock. */
export async function checkLedger(
  env: Terminal["env"],
  { folder }: Pick<Io, "folder">,
): Promise<Check[]> {
  let url: string;
  try {
    url = readLedgerUrl(env, undefined);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return [{ topic, status: "broken", found: error.message }];
  }
  if (url === "sqlite::memory:") {
    const found = "It is kept in memory, and forgotten when the seller ends: fine for trying only.";
    return [{ topic, status: "warning", found }];
  }
  if (isLedgerAbsent(url, folder)) return [checkPlace(url, folder)];
  try {
    const reader = await openLedgerReader({ url });
    const [stats, stops] = await Promise.all([reader.stats(), reader.stops()]).finally(() =>
      reader.close(),
    );
    const count = stats.reduce((sum, each) => sum + each.count, 0);
    const opens: Check = { topic, status: "ok", found: `It opens, and holds ${count} payments` };
    return [opens, ...stops.map(describeStop), ...(await checkHolder(url, folder))];
  } catch (error) {
    if (!isDatabaseError(error)) throw error;
    // A seller migrates that at its start.
    const status = error.kind === "older-schema" ? "warning" : "broken";
    const sentence = error.message.replace(/\.$/, "");
    return [{ topic, status, found: `${sentence}. ${adviceOn(error)}`.trim() }];
  }
}

function describeStop({ kind, name, reason, stoppedAt }: Stop): Check {
  const since = `${new Date(stoppedAt).toISOString().slice(0, 16).replace("T", " ")} UTC`;
  const words = `"${showUnsafe(reason)}"`;
  const route = showUnsafe(name);
  const [target, option] = {
    network: [`payments on ${name}`, `--network ${name}`],
    route: [`payments of the route ${route}`, `--route '${route}'`],
    float: [`refunds of the float ${name}`, `--float ${name}`],
  }[kind];
  const found = `New ${target} are stopped since ${since}: ${words}. End it by coinslot start ${option}`;
  return { topic, status: "warning", found };
}

/** URL of the ledger. `undefined` where it is not there, or named wrongly. */
export function findLedger(
  env: Terminal["env"],
  { folder }: Pick<Io, "folder">,
): string | undefined {
  try {
    const url = readLedgerUrl(env, undefined);
    return isLedgerAbsent(url, folder) ? undefined : url;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return undefined;
  }
}

/** The place where a seller will create it. */
function checkPlace(url: string, folder: string): Check {
  const place = dirname(ledgerFile(url, folder) ?? folder);
  try {
    accessSync(place, constants.W_OK);
    return {
      topic,
      status: "ok",
      found: "It is not there yet: a seller makes it when it starts",
    };
  } catch {
    const found = `Nothing can be written in ${place}: make the folder, or set COINSLOT_LEDGER.`;
    return { topic, status: "broken", found };
  }
}

/** Takes the lock for a moment, where it is free. A running seller holds it otherwise. */
async function checkHolder(url: string, folder: string): Promise<Check[]> {
  const file = ledgerFile(url, folder);
  if (file === undefined || !existsSync(`${file}.lock`)) return [];
  try {
    const lock = await lockDatabaseFile(url);
    lock?.release();
    return [{ topic, status: "ok", found: "No seller uses it at the moment" }];
  } catch (error) {
    // The message says what to remove.
    if (isDatabaseError(error, "configuration"))
      return [{ topic, status: "broken", found: error.message }];
    if (!isDatabaseError(error, "file-locked")) throw error;
    const found =
      "A seller uses it. A second one would not start: several need PostgreSQL in COINSLOT_LEDGER";
    return [{ topic, status: "ok", found }];
  }
}

function adviceOn({ kind }: DatabaseError): string {
  switch (kind) {
    case "configuration":
    case "unreachable":
      return "Start the database, or correct COINSLOT_LEDGER.";
    case "busy":
      return "Try again.";
    default:
      return "";
  }
}
