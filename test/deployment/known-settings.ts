import { facilitatorSettings, indexerSettings } from "@coinslot/hosting";
import { settings as paidIndexerSettings } from "@coinslot/paid-indexer-app";

/** Description of an environment variable that a program reads. */
export interface KnownSetting {
  name: string;
  explanation: string;
  defaultValue?: string;
  isOptional?: boolean;
  isSecret?: boolean;
}

/** The settings that each service reads from its environment. */
export const settingsOf: Readonly<
  Record<"console" | "facilitator" | "indexer" | "paid-indexer", readonly KnownSetting[]>
> = {
  console: facilitatorSettings.filter(({ name }) => name === "COINSLOT_LEDGER"),
  facilitator: facilitatorSettings,
  indexer: indexerSettings,
  "paid-indexer": paidIndexerSettings,
};

/** The setting of a variable: `COINSLOT_RPC_URL_988` for `COINSLOT_RPC_URL_<CHAIN_ID>`. */
export function findSetting<Setting extends { name: string }>(
  settings: readonly Setting[],
  variable: string,
): Setting | undefined {
  const exact = settings.find(({ name }) => name === variable);
  return exact ?? settings.find(({ name }) => formOf(name).test(variable));
}

function formOf(name: string): RegExp {
  const form = name.replace("<CHAIN_ID>", "[1-9][0-9]*").replace("<CHAIN>", "[A-Z][A-Z0-9_]*");
  return new RegExp(`^${form}$`);
}
