import {
  type FacilitatorConfiguration,
  type FacilitatorOptions,
  readFacilitatorOptions,
} from "@coinslot/facilitator";
import {
  type Environment,
  type LogLevel,
  logLevels,
  readIndexerServiceConfiguration,
  readSecret,
  type Setting,
} from "@coinslot/hosting";
import { IndexerConfigurationError, type IndexerConfigurationInput } from "@coinslot/indexer";
import {
  addressSchema,
  ConfigurationError,
  isNetwork,
  isSameAddress,
  knownAsset,
  knownChains,
  parseMoney,
  plasma,
} from "@coinslot/protocol";
import { inOurWords } from "./facilitator-problems.ts";
import type { RemoteApi } from "./forward-requests.ts";
import { type SettingName, settings } from "./settings.ts";
import type { Terms } from "./sold-routes.ts";

/** Configuration of the program. */
export interface PaidIndexerConfiguration {
  host: string;
  /** 0: any free one. */
  port: number;
  /** Number of trusted proxies in front, for host, protocol and caller. */
  trustProxy: number;
  /** The buyers' URL of this service, if a proxy is in front. */
  publicUrl?: string | undefined;
  logLevel: LogLevel;
  terms: Terms;
  facilitator: Pick<FacilitatorOptions, "networks" | "ledger" | "refunds">;
  /** A remote API, or the chains that the one in this process is to index. */
  upstream: { remote: RemoteApi } | { embedded: IndexerConfigurationInput };
}

/**
 * Reads one setting, from its variable or from the file that `<name>_FILE` names, or its default.
 */
type Read = (name: SettingName) => string | undefined;
type Tell = (problem: string) => void;

/**
 * Reads the configuration from the environment; `settings` lists the variables.
 *
 * @throws ConfigurationError with all faults and their remedies; no problem repeats a secret
 */
export function readConfiguration(env: Environment): PaidIndexerConfiguration {
  const problems: string[] = [];
  const tell: Tell = (problem) => problems.push(problem);
  const read: Read = (name) => {
    const setting: Setting | undefined = settings.find((each) => each.name === name);
    return readSecret(env, name, tell) ?? setting?.defaultValue;
  };

  const host = read("PAID_INDEXER_HOST") ?? "";
  const port = readNumber(read, "PAID_INDEXER_PORT", { most: 65_535, tell });
  const trustProxy = readNumber(read, "PAID_INDEXER_TRUST_PROXY", { most: 100, tell });
  const publicUrl = read("COINSLOT_PUBLIC_URL")
    ? readUrl(read, "COINSLOT_PUBLIC_URL", tell)
    : undefined;
  const logLevel = readLogLevel(read, tell);
  const terms = readTerms(read, tell);
  const facilitator = readFacilitator(read, tell);
  const upstream = read("INDEXER_URL") ? readRemote(read, tell) : readEmbedded(env, read, tell);
  if (problems.length > 0 || !terms || !facilitator || !upstream) {
    // Some settings are read twice.
    throw new ConfigurationError("The paid indexer", [...new Set(problems)]);
  }
  return { host, port, trustProxy, publicUrl, logLevel, terms, facilitator, upstream };
}

function readNumber(
  read: Read,
  name: SettingName,
  { most, tell }: { most: number; tell: Tell },
): number {
  const text = read(name) ?? "";
  const number = /^[0-9]{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(number <= most)) tell(`${name}: must be a whole number from 0 to ${most}`);
  return number;
}

function readLogLevel(read: Read, tell: Tell): LogLevel {
  const level = logLevels.find((each) => each === read("PAID_INDEXER_LOG_LEVEL"));
  if (level === undefined) tell(`PAID_INDEXER_LOG_LEVEL: must be one of ${logLevels.join(", ")}`);
  return level ?? "info";
}

function readTerms(read: Read, tell: Tell): Terms | undefined {
  const network = read("COINSLOT_NETWORK") ?? "";
  const asset = isNetwork(network) ? knownAsset(network) : undefined;
  if (asset === undefined) {
    const known = knownChains.map((chain) => `${chain.network} (${chain.name})`);
    tell(`COINSLOT_NETWORK: must be a known chain: ${known.join(", ")}`);
  }
  const price = parseMoney(read("PAID_INDEXER_PRICE") ?? "", asset?.decimals ?? 6);
  if (!price) tell("PAID_INDEXER_PRICE: must be an amount such as $0.001, with 6 decimals at most");
  const payTo = addressSchema.safeParse(read("PAY_TO"));
  if (!payTo.success) {
    tell(
      "PAY_TO: must be the address that receives the money, 0x and 40 hexadecimal digits with a right checksum",
    );
  }
  if (!isNetwork(network) || !asset || !price || !payTo.success) return undefined;
  return { network, asset, price, payTo: payTo.data };
}

function readFacilitator(
  read: Read,
  tell: Tell,
): PaidIndexerConfiguration["facilitator"] | undefined {
  const network = read("COINSLOT_NETWORK") ?? "";
  const rpcUrls = read("COINSLOT_RPC_URL")?.split(",");
  const seedPhrase = read("FACILITATOR_SEED_PHRASE");
  const privateKey = read("FACILITATOR_PRIVATE_KEY");
  if (seedPhrase && privateKey) {
    tell("FACILITATOR_SEED_PHRASE and FACILITATOR_PRIVATE_KEY are both set: leave out one");
  }
  const options = {
    networks: [
      {
        // A fault of the network is reported with the terms.
        network: isNetwork(network) ? network : plasma,
        rpcUrls: rpcUrls?.map((url) => url.trim()) ?? [],
        relayer: seedPhrase ? { seedPhrase } : privateKey && { privateKey },
      },
    ],
    ledger: read("COINSLOT_LEDGER"),
  };
  try {
    requireTwoAccounts(readFacilitatorOptions(options), { payTo: read("PAY_TO"), tell });
    return options;
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    for (const problem of error.problems) tell(inOurWords(problem));
    return undefined;
  }
}

/** An intruder in this process has the relayer's key: it must not be the one to the takings. */
function requireTwoAccounts(
  { networks }: FacilitatorConfiguration,
  { payTo = "", tell }: { payTo: string | undefined; tell: Tell },
): void {
  const relayers = networks.flatMap((network) => network.relayers);
  if (relayers.some(({ address }) => isSameAddress(address, payTo))) {
    tell("PAY_TO: is the facilitator's own account. Let another seed receive the money");
  }
}

/** @returns a URL without a slash at its end; `undefined` when it is unusable, which is reported */
function readUrl(read: Read, name: SettingName, tell: Tell): string | undefined {
  const text = read(name) ?? "";
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain =
    /^https?:$/.test(url?.protocol ?? "") &&
    !url?.username &&
    !url?.password &&
    !url?.search &&
    !url?.hash;
  if (url !== undefined && isPlain) return url.href.replace(/\/+$/, "");
  tell(`${name}: must begin with http:// or https://, without a user, a query or a fragment`);
  return undefined;
}

function readRemote(read: Read, tell: Tell): { remote: RemoteApi } | undefined {
  const url = readUrl(read, "INDEXER_URL", tell);
  const apiKey = read("INDEXER_API_KEY");
  if (apiKey === undefined) {
    tell(
      "INDEXER_API_KEY: is not set. The service behind INDEXER_URL requires a key: create one there",
    );
  } else if (!/^[\x21-\x7e]{1,512}$/.test(apiKey)) {
    // Reported here, since a later error would repeat the key.
    tell("INDEXER_API_KEY: holds a character that is invalid in a header");
  }
  if (url === undefined || apiKey === undefined) return undefined;
  return { remote: { url, apiKey } };
}

function readEmbedded(
  env: Environment,
  read: Read,
  tell: Tell,
): { embedded: IndexerConfigurationInput } | undefined {
  if (read("INDEXER_API_KEY") !== undefined) {
    tell("INDEXER_API_KEY: is for a remote service, and INDEXER_URL is not set");
  }
  try {
    return { embedded: readIndexerServiceConfiguration({ env }).indexer };
  } catch (error) {
    if (!(error instanceof IndexerConfigurationError)) throw error;
    for (const problem of error.problems) tell(problem);
    return undefined;
  }
}
