import { type IndexerChainName, indexerChain, isIndexerChainName } from "@coinslot/indexer";
import { type Environment, readSecret } from "../environment/read-secret.ts";
import type { IndexerSettingName } from "./settings.ts";
import { readIndexerWebhooks } from "./webhook-settings.ts";

/** Values of the environment; a value that is not set is undefined. */
export interface EnvironmentValues {
  configFile: string | undefined;
  database: string | undefined;
  webhooks: readonly Record<string, unknown>[] | undefined;
  settings: Readonly<Record<string, string | number | undefined>>;
  /** Of presets. */
  chainNames: readonly string[];
  rpcUrls: ReadonlyMap<string, readonly string[]>;
  startBlocks: ReadonlyMap<string, number>;
}

/** Settings that one variable with a plain value sets. */
const variables = {
  host: "INDEXER_HOST",
  port: "INDEXER_PORT",
  authStatus: "INDEXER_AUTH_STATUS",
  trustProxy: "INDEXER_TRUST_PROXY",
  logLevel: "INDEXER_LOG_LEVEL",
} as const satisfies Record<string, IndexerSettingName>;
const numbers: ReadonlySet<string> = new Set(["port", "trustProxy"]);

/** Reads the variables of the service. A variable that is empty is not set. */
export function readEnvironment(env: Environment): {
  values: EnvironmentValues;
  /** Settings and the variables they came from. */
  names: ReadonlyMap<string, string>;
  problems: string[];
} {
  const problems: string[] = [];
  const names = new Map<string, string>();
  const read = (variable: string) => env[variable]?.trim() || undefined;
  const list = (text: string | undefined) =>
    (text ?? "").split(",").flatMap((part) => part.trim() || []);

  const settings = Object.fromEntries(
    Object.entries(variables).flatMap(([setting, variable]) => {
      const text = read(variable);
      if (text === undefined) return [];
      names.set(setting, variable);
      return [[setting, numbers.has(setting) && /^[0-9]+$/.test(text) ? Number(text) : text]];
    }),
  );
  const database = readSecret(env, "INDEXER_DATABASE", (problem) => problems.push(problem));
  if (database !== undefined) names.set("database", "INDEXER_DATABASE");

  const webhooks = readIndexerWebhooks(env, (problem) => problems.push(problem));
  if (webhooks !== undefined) names.set("webhooks[0]", "INDEXER_WEBHOOK_URL");

  const chainNames = list(read("INDEXER_CHAINS"));
  const rpcUrls = new Map<string, string[]>();
  const startBlocks = new Map<string, number>();
  for (const [variable, text] of Object.entries(env)) {
    const [, kind, suffix] = /^INDEXER_(RPC_URLS|START_BLOCK)_(\w+)$/.exec(variable) ?? [];
    if (suffix === undefined || !text) continue;
    const chain = suffix.toLowerCase();
    if (kind === "RPC_URLS") rpcUrls.set(chain, list(text));
    else if (/^[0-9]{1,10}$/.test(text)) startBlocks.set(chain, Number(text));
    else problems.push(`${variable}: must be the number of a block`);
  }
  for (const chain of chainNames) {
    if (rpcUrls.has(chain)) continue;
    const shared = isIndexerChainName(chain) ? findSharedUrls(env, chain, problems) : undefined;
    if (shared !== undefined) {
      rpcUrls.set(chain, list(shared));
      continue;
    }
    problems.push(
      `${describeVariable(chain)}: is not set. Name RPC URLs of ${chain}, separated by commas.`,
    );
    // Reported already, so that it is not reported again as a chain without URLs.
    rpcUrls.set(chain, ["http://localhost"]);
  }
  const values = {
    configFile: read("INDEXER_CONFIG"),
    database,
    webhooks,
    settings,
    chainNames,
    rpcUrls,
    startBlocks,
  };
  return { values, names, problems };
}

/** The endpoints that sellers, buyers and the facilitator use, too: by the chain id. */
function findSharedUrls(
  env: Environment,
  chain: IndexerChainName,
  problems: string[],
): string | undefined {
  const tell = (problem: string) => void problems.push(problem);
  const { chainId } = indexerChain(chain, { rpcUrls: [] });
  const isMain = env.COINSLOT_NETWORK?.trim() === `eip155:${chainId}`;
  return (
    (isMain ? readSecret(env, "COINSLOT_RPC_URL", tell) : undefined) ??
    readSecret(env, `COINSLOT_RPC_URL_${chainId}`, tell)
  );
}

/** The variable for a chain's endpoints. */
function describeVariable(chain: string): string {
  const ofIndexer = `INDEXER_RPC_URLS_${chain.toUpperCase()}`;
  if (!isIndexerChainName(chain)) return ofIndexer;
  return `COINSLOT_RPC_URL_${indexerChain(chain, { rpcUrls: [] }).chainId} or ${ofIndexer}`;
}
