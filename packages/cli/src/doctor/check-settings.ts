import { statSync } from "node:fs";
import { join } from "node:path";
import type { ConfiguredNetwork } from "@coinslot/hosting/environment";
import { type Address, isSameAddress } from "@coinslot/protocol";
import type { LocalAccount } from "viem";
import { UsageError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import { readNetworks } from "../networks.ts";
import { readAccount } from "../read-secret.ts";
import type { Terminal } from "../terminal.ts";
import { readHolders } from "../wallet/read-holders.ts";
import type { Check } from "./check.ts";

/** Results of the offline checks, and the settings for the next ones. */
export interface CheckedSettings {
  checks: Check[];
  networks: ConfiguredNetwork[];
  relayer: LocalAccount | undefined;
  /** The seller's address. */
  payTo: Address | undefined;
}

const topic = "settings";

/** Reads the environment, and reports all its faults. */
export function checkSettings(
  env: Terminal["env"],
  { folder }: Pick<Io, "folder">,
): CheckedSettings {
  const checks: Check[] = [];
  function read<T>(reading: () => T, otherwise: T): T {
    try {
      return reading();
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      checks.push({ topic, status: "broken", found: error.message });
      return otherwise;
    }
  }
  const networks = read(() => readNetworks(env), []);
  const holders = read(() => readHolders(env), []);
  const relayer = read(() => readAccount(env, "FACILITATOR"), undefined);
  const seller = holders.find(({ role }) => role === "seller")?.address;
  if (relayer && seller && isSameAddress(relayer.address, seller)) {
    const found =
      "The relayer and the seller are one account: a thief of the relayer's seed also gets the income. Give the relayer a seed of its own.";
    checks.push({ topic, status: "warning", found });
  }
  if (isOpenToOthers(join(folder, ".env"))) {
    const found = "Others on this machine can read .env: chmod 600 .env";
    checks.push({ topic, status: "warning", found });
  }
  if (checks.length === 0) {
    const roles = holders.map(({ role }) => role).join(", ") || "no account";
    const names = networks.map(({ name }) => name).join(", ");
    checks.push({ topic, status: "ok", found: `${roles} on ${names}` });
  }
  return { checks, networks, relayer, payTo: seller };
}

function isOpenToOthers(file: string): boolean {
  const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0;
  return (mode & 0o077) !== 0 && process.platform !== "win32";
}
