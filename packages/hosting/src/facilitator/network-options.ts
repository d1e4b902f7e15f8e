import {
  type FacilitatorNetworkOptions,
  type FacilitatorOptions,
  readFacilitatorOptions,
} from "@coinslot/facilitator";
import {
  type Address,
  type Asset,
  addressSchema,
  ConfigurationError,
  findKnownChain,
  isNetwork,
  isSameAddress,
  knownAsset,
  type Network,
  plasma,
  stable,
} from "@coinslot/protocol";
import * as z from "zod";
import { type Environment, readSecret } from "../environment/read-secret.ts";
import { findNetworks, isHttpUrl } from "../networks/configured-networks.ts";

type Tell = (problem: string) => void;

/** Replaces an endpoint whose problem is reported already, so that it is not reported twice. */
const standIn = ["http://localhost"];

const networkForm = z.custom<Network>(
  (value) => typeof value === "string" && isNetwork(value),
  "must be a network such as eip155:9745",
);
const weiWords = 'must be an amount of wei, such as "10000000000000000", in quotes';
const weiSchema = z
  .union([z.int(weiWords), z.string().regex(/^[0-9]{1,30}$/)], weiWords)
  .transform(BigInt);
const assetSchema = z.strictObject({
  address: addressSchema,
  name: z.string().min(1),
  version: z.string().min(1),
  decimals: z.int().min(0).max(77),
});

/** A network as the file describes it. */
export const fileNetworkSchema = z.strictObject({
  network: networkForm,
  /** Default: those of the environment, or public ones. */
  rpcUrls: z.array(z.string()).min(1, "is empty: name at least one").optional(),
  /** Tokens besides the known one. */
  assets: z.array(z.union([addressSchema, assetSchema])).default([]),
  serveAfter: z.int().optional(),
  finalAfter: z.int().optional(),
  blockTimeSeconds: z.number().optional(),
  callsPerSecond: z.number().optional(),
  maxFeePerGas: weiSchema.optional(),
  minimumBalance: weiSchema.optional(),
  warningBalance: weiSchema.optional(),
});

/** A network as the file describes it, with defaults. */
export type FileNetwork = z.output<typeof fileNetworkSchema>;

/**
 * The networks to serve: those of the file and of the environment. A service whose `/settle` is
 * open to others settles the named tokens, and the network's known one.
 *
 * @param tell receives each problem that shows without a chain, those of the ledger's URL included
 */
export function readNetworkOptions(options: {
  env: Environment;
  described: readonly FileNetwork[];
  ledger: string;
  tell: Tell;
}): FacilitatorNetworkOptions[] {
  const { env, described, ledger, tell } = options;
  const relayer = readRelayer(env, tell);
  const fromEnvironment = new Map(findNetworks(env, tell).map((each) => [each.network, each]));
  const fromFile = new Map(described.map((each) => [each.network, each]));
  if (fromFile.size < described.length) tell("networks: describes one of them twice");
  const known = [...new Set([...fromEnvironment.keys(), ...fromFile.keys()])];
  const networks = chooseNetworks({ env, known, tell }).map((network) => {
    const { rpcUrls: fileUrls, assets = [], maxFeePerGas, ...others } = fromFile.get(network) ?? {};
    const { rpcUrls = fileUrls ?? publicRpcUrls(network, tell), tokens = [] } =
      fromEnvironment.get(network) ?? {};
    return {
      ...others,
      network,
      // Bad URLs of the environment are reported already.
      rpcUrls: rpcUrls === fileUrls || rpcUrls.every(isHttpUrl) ? rpcUrls : standIn,
      relayer,
      assets: readAssets(network, [...assets, ...tokens], tell),
      fees: { maxFeePerGas },
    };
  });
  tellStaticProblems({ networks, ledger }, tell);
  return networks;
}

/** The account that pays the gas, on every network. */
function readRelayer(env: Environment, tell: Tell): FacilitatorNetworkOptions["relayer"] {
  const seedPhrase = readSecret(env, "FACILITATOR_SEED_PHRASE", tell);
  const privateKey = readSecret(env, "FACILITATOR_PRIVATE_KEY", tell);
  if (seedPhrase !== undefined && privateKey !== undefined) {
    tell("FACILITATOR_SEED_PHRASE and FACILITATOR_PRIVATE_KEY are both set: leave out one");
  }
  if (seedPhrase !== undefined) return { seedPhrase };
  return privateKey === undefined ? undefined : { privateKey };
}

function chooseNetworks(options: {
  env: Environment;
  known: readonly Network[];
  tell: Tell;
}): readonly Network[] {
  const { env, known, tell } = options;
  const usual = known.length > 0 ? known : [plasma, stable];
  const named = env.FACILITATOR_NETWORKS?.trim();
  if (!named) return usual;
  const parts = named.split(",").map((part) => part.trim());
  const networks = parts.filter(isNetwork);
  if (networks.length < parts.length) {
    tell("FACILITATOR_NETWORKS: must be networks such as eip155:9745,eip155:988");
  }
  // Without a readable one, the other checks go on as if it were not set.
  return networks.length > 0 ? [...new Set(networks)] : usual;
}

function publicRpcUrls(network: Network, tell: Tell): string[] {
  const url = findKnownChain(network)?.publicRpcUrl;
  if (url !== undefined) return [url];
  const chainId = network.slice("eip155:".length);
  tell(`COINSLOT_RPC_URL_${chainId}: is not set. Name endpoints of ${network}`);
  return standIn;
}

function readAssets(
  network: Network,
  named: readonly (Address | Asset)[],
  tell: Tell,
): (Address | Asset)[] {
  const usual = knownAsset(network);
  const assets: (Address | Asset)[] = usual === undefined ? [] : [usual];
  for (const asset of named) {
    // The same token may be named in the file, with its domain, and in the environment.
    const isNew = assets.every((each) => !isSameAddress(addressOf(each), addressOf(asset)));
    if (isNew) assets.push(asset);
  }
  if (assets.length > 0) return assets;
  tell(`COINSLOT_TOKENS: names no token on ${network}, which has no known token`);
  return ["0x0000000000000000000000000000000000000001"];
}

function addressOf(asset: Address | Asset): Address {
  return typeof asset === "string" ? asset : asset.address;
}

/** Reports the problems that the facilitator itself would find, by the names of our settings. */
function tellStaticProblems(options: FacilitatorOptions, tell: Tell): void {
  try {
    readFacilitatorOptions(options);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    for (const problem of error.problems) tell(inSettings(problem, options));
  }
}

/** Rewrites a problem of the facilitator in the names of our settings. */
export function inSettings(
  problem: string,
  { networks }: Pick<FacilitatorOptions, "networks">,
): string {
  const [, index, rest = problem] = /^networks\[(\d+)\]: (.*)$/.exec(problem) ?? [];
  const network = networks[Number(index)]?.network;
  if (/^relayer\.privateKey/.test(rest)) {
    return rest.replace("relayer.privateKey", "FACILITATOR_PRIVATE_KEY:");
  }
  if (/^relayer\.seedPhrase/.test(rest)) {
    return rest.replace("relayer.seedPhrase", "FACILITATOR_SEED_PHRASE:");
  }
  if (/^relayer/.test(rest)) {
    return "FACILITATOR_SEED_PHRASE: is not set, nor is FACILITATOR_PRIVATE_KEY. Name the account that pays the gas, such as the one that coinslot init makes";
  }
  if (/^ledger/i.test(rest)) return `COINSLOT_LEDGER: ${rest.replace(/^ledger /, "")}`;
  if (/^The ledger cannot be used/.test(rest)) {
    return `COINSLOT_LEDGER: ${rest.replace(/\.$/, "")}. Start or repair the database, or name another.`;
  }
  const words = rest
    .replaceAll("rpcUrls", "the network's COINSLOT_RPC_URL")
    .replace(
      "Leave the network out of channels.networks",
      "Name the others in FACILITATOR_CHANNEL_NETWORKS",
    )
    .replace("correct network.", "correct the network's name.");
  return network === undefined ? words : `${network}: ${words}`;
}
