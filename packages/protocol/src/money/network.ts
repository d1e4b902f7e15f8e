import * as z from "zod";

/** A chain in CAIP-2 form, `eip155:<chain id>`. */
export type Network = `eip155:${number}`;

const caip2 = /^eip155:([1-9][0-9]{0,15})$/;

/** Names that version 1 used before CAIP-2, for the networks that have one. */
const legacyNames = new Map<string, Network>([
  ["abstract", "eip155:2741"],
  ["abstract-testnet", "eip155:11124"],
  ["avalanche", "eip155:43114"],
  ["avalanche-fuji", "eip155:43113"],
  ["base", "eip155:8453"],
  ["base-sepolia", "eip155:84532"],
  ["celo", "eip155:42220"],
  ["educhain", "eip155:41923"],
  ["ethereum", "eip155:1"],
  ["flare", "eip155:14"],
  ["iotex", "eip155:4689"],
  ["megaeth", "eip155:4326"],
  ["monad", "eip155:143"],
  ["peaq", "eip155:3338"],
  ["polygon", "eip155:137"],
  ["polygon-amoy", "eip155:80002"],
  ["sei", "eip155:1329"],
  ["sei-testnet", "eip155:1328"],
  ["sepolia", "eip155:11155111"],
  ["skale-base-sepolia", "eip155:324705682"],
  ["stable", "eip155:988"],
  ["stable-testnet", "eip155:2201"],
  ["story", "eip155:1514"],
]);

/**
 * Of these names, those in the table of the first packages (`x402` up to 1.2). Their clients refuse
 * a whole offer for one network that is not in it.
 */
const namesOfFirstPackages = new Set([
  "abstract",
  "abstract-testnet",
  "avalanche",
  "avalanche-fuji",
  "base",
  "base-sepolia",
  "educhain",
  "iotex",
  "peaq",
  "polygon",
  "polygon-amoy",
  "sei",
  "sei-testnet",
  "skale-base-sepolia",
  "story",
]);

const legacyNameOf = new Map([...legacyNames].map(([name, network]) => [network, name]));

/**
 * Returns whether a text is an EVM network in CAIP-2 form with a chain id that a number can hold.
 */
export function isNetwork(text: string): text is Network {
  const parts = caip2.exec(text);
  return parts !== null && Number.isSafeInteger(Number(parts[1]));
}

/** A CAIP-2 EVM network. */
export const networkSchema = z
  .string()
  .max(32)
  .refine(isNetwork, "expected a network as eip155:<id>");

/** A network as a version 1 message may name it: CAIP-2, or a name such as `base-sepolia`. */
export const networkNameSchema = z.string().min(1).max(64);

/** The CAIP-2 form of a network from either form of its name; `undefined` for an unknown name. */
export function parseNetwork(name: string): Network | undefined {
  return isNetwork(name) ? name : legacyNames.get(name);
}

/** The version 1 name of a network (`base` for `eip155:8453`), if it has one. */
export function legacyNetworkName(network: Network): string | undefined {
  return legacyNameOf.get(network);
}

/** Returns whether the clients of the first packages know a network by this name. */
export function isNameOfFirstPackages(name: string): boolean {
  return namesOfFirstPackages.has(name);
}

/** The CAIP-2 form of a chain id. */
export function networkOf(chainId: number): Network {
  return `eip155:${chainId}`;
}

/** A chain of any namespace in CAIP-2 form: the type of a network in other implementations. */
export type Caip2 = `${string}:${string}`;

/**
 * The CAIP-2 form of a network that another implementation named; an unknown name becomes
 * `unknown:<name>`.
 */
export function caip2Of(name: string): Caip2 {
  return parseNetwork(name) ?? (isCaip2(name) ? name : `unknown:${name.replaceAll(":", "-")}`);
}

/** Returns whether a text is a chain of any namespace in CAIP-2 form. */
export function isCaip2(text: string): text is Caip2 {
  return /^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/.test(text);
}

/** The chain id of a CAIP-2 network. */
export function chainIdOf(network: Network): number {
  return Number(network.slice("eip155:".length));
}
