import {
  IndexerConfigurationError,
  type IndexerConfigurationInput,
  indexerChain,
  indexerChainNames,
  isIndexerChainName,
  readConfiguration,
} from "@coinslot/indexer";
import * as z from "zod";
import { logLevels } from "../create-logger.ts";
import type { Environment } from "../environment/read-secret.ts";
import { readSettingsFile } from "../read-settings-file.ts";
import { type EnvironmentValues, readEnvironment } from "./read-environment.ts";

const port = "must be a port, 0 to 65535 (0: any free one)";

const settingsSchema = z.object({
  /** Address to listen on. Default 127.0.0.1, this machine alone. */
  host: z.string().min(1).default("127.0.0.1"),
  port: z.int(port).min(0, port).max(65_535, port).default(8_080),
  authStatus: z.enum(["specified", "live"], "must be specified or live").default("specified"),
  /** Number of proxies in front whose claim of the caller's address is trusted. */
  trustProxy: z
    .int("must be the number of proxies in front of the service")
    .min(0, "must be the number of proxies in front of the service")
    .default(0),
  logLevel: z.enum(logLevels, `must be one of ${logLevels.join(", ")}`).default("info"),
});

/** Settings of the service beside those of the indexer. */
export type ServiceSettings = z.output<typeof settingsSchema>;

/** Configuration of the service. */
export interface IndexerServiceConfiguration extends ServiceSettings {
  indexer: IndexerConfigurationInput;
}

export interface IndexerSources {
  /** The process's environment; it goes before the file. */
  env: Environment;
  /** A YAML or JSON file. Default: the one in INDEXER_CONFIG, if any. */
  file?: string | undefined;
  /** Overrides both, such as the chain of a devnet. */
  overrides?: Partial<IndexerConfigurationInput>;
}

const fileChain = z.record(z.string(), z.unknown());

/**
 * Reads the configuration of the service from environment and file.
 *
 * @throws IndexerConfigurationError with all problems at once; none repeats a URL, which may hold a
 *   password
 */
export function readIndexerServiceConfiguration(
  sources: IndexerSources,
): IndexerServiceConfiguration {
  const { env, overrides = {} } = sources;
  const environment = readEnvironment(env);
  const problems = [...environment.problems];
  const file = readFile(sources.file ?? environment.values.configFile, problems);
  const { host, port: listenPort, authStatus, trustProxy, logLevel, ...engine } = file;
  const settings = settingsSchema.safeParse({
    ...withoutUndefined({ host, port: listenPort, authStatus, trustProxy, logLevel }),
    ...withoutUndefined(environment.values.settings),
  });
  if (!settings.success) {
    problems.push(
      ...settings.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`),
    );
  }

  const { chains: fileChains, ...rest } = engine;
  const chains = overrides.chains ?? readChains(fileChains, environment.values, problems);
  const input: unknown = {
    ...rest,
    ...withoutUndefined({
      database: environment.values.database,
      webhooks: environment.values.webhooks,
    }),
    ...overrides,
    chains,
  };
  problems.push(...problemsOf(input));
  if (problems.length > 0 || !settings.success || !isIndexerConfiguration(input)) {
    throw new IndexerConfigurationError(problems.map((each) => rename(each, environment.names)));
  }
  return { ...settings.data, indexer: input };
}

/**
 * The URL of the database, the only setting of the commands on keys.
 *
 * @throws IndexerConfigurationError
 */
export function readIndexerDatabaseUrl({ env, file }: IndexerSources): string {
  const environment = readEnvironment(env);
  const problems = [...environment.problems];
  const { database } = readFile(file ?? environment.values.configFile, problems);
  const url = environment.values.database ?? database ?? "sqlite:./indexer.db";
  if (typeof url !== "string") problems.push("database: must be text");
  if (problems.length > 0 || typeof url !== "string") throw new IndexerConfigurationError(problems);
  return url;
}

/** @param problems receives the problems of the file */
function readFile(path: string | undefined, problems: string[]): Record<string, unknown> {
  const tell = (problem: string) => void problems.push(problem);
  return readSettingsFile(path, { keys: "chains and database", tell });
}

// Replaces a chain whose problem is reported already, so that it is not reported twice.
const standIn = indexerChain("plasma", { rpcUrls: ["http://localhost"] });

const noChains = `chains: none is configured. Set INDEXER_CHAINS to names such as plasma,stable and COINSLOT_RPC_URL_9745 to the RPC URLs of plasma, or describe chains in a file and name that in INDEXER_CONFIG.`;

/** The chains of the file and of the environment. A preset needs its RPC URLs alone. */
function readChains(
  fromFile: unknown,
  { chainNames, rpcUrls, startBlocks }: EnvironmentValues,
  problems: string[],
): unknown[] {
  const read = z.array(fileChain).safeParse(fromFile ?? []);
  if (!read.success) {
    problems.push("chains: must be a list of chains");
    return [];
  }
  const described = read.data.map(({ preset, ...chain }) => {
    const name = String(preset ?? chain.name);
    const urls = rpcUrls.get(name);
    const whole = urls === undefined ? chain : { ...chain, rpcUrls: urls };
    return preset === undefined ? whole : withPreset(name, whole, problems);
  });
  const named = chainNames.map((name) => {
    const urls = rpcUrls.get(name) ?? [];
    const startBlock = startBlocks.get(name);
    return withPreset(name, { rpcUrls: urls, ...withoutUndefined({ startBlock }) }, problems);
  });
  const chains = [...described, ...named];
  if (chains.length > 0) return chains;
  problems.push(noChains);
  return [standIn];
}

function withPreset(name: string, chain: Record<string, unknown>, problems: string[]): unknown {
  if (isIndexerChainName(name)) {
    const { startBlock = 0, ...options } = chain;
    const { tokens, ...known } = indexerChain(name, { rpcUrls: [] });
    return { ...known, tokens: tokens.map((token) => ({ ...token, startBlock })), ...options };
  }
  problems.push(`chains: ${name} is not known. Known are ${indexerChainNames().join(", ")}.`);
  return standIn;
}

function problemsOf(input: unknown): readonly string[] {
  try {
    readConfiguration(input);
    return [];
  } catch (error) {
    if (!(error instanceof IndexerConfigurationError)) throw error;
    return error.problems;
  }
}

/** An input without problems is a configuration of the engine. */
function isIndexerConfiguration(input: unknown): input is IndexerConfigurationInput {
  return problemsOf(input).length === 0;
}

/** Names a setting by its variable. */
function rename(problem: string, names: ReadonlyMap<string, string>): string {
  const end = problem.indexOf(":");
  const name = names.get(problem.slice(0, end));
  return name === undefined ? problem : `${name}${problem.slice(end)}`;
}

function withoutUndefined(values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}
