import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Devnet } from "@coinslot/devnet";

/** Environment of a seller and a buyer on a devnet. */
export function devnetEnvironment(devnet: Devnet): Record<string, string> {
  const { network, rpcUrl, accounts } = devnet;
  const float = floatOf(devnet);
  return {
    COINSLOT_NETWORK: network,
    COINSLOT_RPC_URL: rpcUrl,
    // The chain's records end with it.
    COINSLOT_LEDGER: "sqlite::memory:",
    FACILITATOR_PRIVATE_KEY: accounts.relayer.privateKey,
    ...(float && { FLOAT_PRIVATE_KEY: float.privateKey }),
    PAY_TO: accounts.seller.address,
    WALLET_PRIVATE_KEY: accounts.buyer.privateKey,
  };
}

/** The account that pays refunds: one without another part. */
export function floatOf({ accounts: { others } }: Devnet): Devnet["accounts"]["buyer"] | undefined {
  return others[0];
}

/** The environment as the lines of an .env file. */
export function describeEnvironment(environment: Readonly<Record<string, string>>): string {
  const lines = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  return ["# .env: a seller, its facilitator and a buyer on this devnet", ...lines].join("\n");
}

/**
 * Writes each variable into a file of its name, for its owner alone: containers take secrets so.
 */
export async function writeFiles(
  folder: string,
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const [name, value] of Object.entries(environment)) {
    await writeFile(join(folder, name), `${value}\n`, { mode: 0o600 });
  }
}
