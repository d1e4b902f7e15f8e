import { getChainPreset } from "@coinslot/chain";
import {
  type Address,
  type Asset,
  chainIdOf,
  hasWitnesses as haveWitnesses,
  isNetwork,
  isWellFormedAddress,
  knownAsset,
  type Network,
  networkOf,
} from "@coinslot/protocol";
import { type Environment, readSecret } from "../environment/read-secret.ts";

/** A network that the environment gives an RPC endpoint for. */
export interface ConfiguredNetwork {
  network: Network;
  chainId: number;
  /** For people. */
  name: string;
  /** Of its native coin. */
  symbol: string;
  rpcUrls: string[];
  /** The stablecoin that is known there. */
  knownToken: Asset | undefined;
  /** Other tokens of `COINSLOT_TOKENS`, by their address alone where it gives no more of them. */
  tokens: (Address | Asset)[];
}

const numbered = /^COINSLOT_RPC_URL_([1-9][0-9]{0,15})(?:_FILE)?$/;

/**
 * The networks that an environment configures: `COINSLOT_NETWORK` with `COINSLOT_RPC_URL`, then
 * every `COINSLOT_RPC_URL_<chain id>`. Several URLs of one network are separated by commas, the
 * preferred one first. `COINSLOT_TOKENS` names tokens, separated by commas, as
 * `<network>/<address>`, or with all that decides on a payment as
 * `<network>/<address>/<decimals>/<version>/<name>`.
 *
 * @param tell receives each problem; none repeats a URL
 */
export function findNetworks(
  env: Environment,
  tell: (problem: string) => void,
): ConfiguredNetwork[] {
  const networks = new Map<Network, ConfiguredNetwork>();
  function add(network: Network, variable: string): void {
    const rpcUrls = (readSecret(env, variable, tell) ?? "").split(",").map((url) => url.trim());
    if (!rpcUrls.every(isHttpUrl)) {
      tell(`${variable} must hold URLs that begin with http:// or https://`);
    }
    networks.set(network, describe(network, rpcUrls));
  }

  const main = env.COINSLOT_NETWORK;
  if (main) {
    if (isNetwork(main)) add(main, mainVariable(env, main));
    else tell("COINSLOT_NETWORK: must be a network such as eip155:9745");
  } else if (readSecret(env, "COINSLOT_RPC_URL", tell)) {
    tell("COINSLOT_RPC_URL is set: set COINSLOT_NETWORK to its network as well");
  }
  for (const [variable, value] of Object.entries(env)) {
    const chainId = numbered.exec(variable)?.[1];
    if (chainId === undefined || !value) continue;
    const network = networkOf(Number(chainId));
    if (!networks.has(network)) add(network, `COINSLOT_RPC_URL_${chainId}`);
  }
  for (const [network, token] of readTokens(env, tell)) {
    const configured = networks.get(network);
    if (configured) configured.tokens.push(token);
    else tell(`COINSLOT_TOKENS names a token on ${network}, which has no RPC URL`);
  }
  return [...networks.values()];
}

/** The main network's nodes may be named by its number instead. */
function mainVariable(env: Environment, main: Network): string {
  const byNumber = `COINSLOT_RPC_URL_${chainIdOf(main)}`;
  const isSet = (name: string) => Boolean(env[name] || env[`${name}_FILE`]);
  return !isSet("COINSLOT_RPC_URL") && isSet(byNumber) ? byNumber : "COINSLOT_RPC_URL";
}

function describe(network: Network, rpcUrls: string[]): ConfiguredNetwork {
  const chainId = chainIdOf(network);
  const { name, nativeCurrency } = getChainPreset(chainId);
  const { symbol } = nativeCurrency;
  return { network, chainId, name, symbol, rpcUrls, knownToken: knownAsset(network), tokens: [] };
}

function readTokens(
  env: Environment,
  tell: (problem: string) => void,
): [Network, Address | Asset][] {
  const entries = (env.COINSLOT_TOKENS ?? "").split(",").map((entry) => entry.trim());
  return entries.flatMap((entry): [Network, Address | Asset][] => {
    if (entry === "") return [];
    const [network = "", address = "", ...rest] = entry.split("/");
    if (isNetwork(network) && isWellFormedAddress(address)) {
      const token = rest.length === 0 ? address : toAsset(address, rest);
      if (token !== undefined) return [[network, token]];
    }
    const forms = "eip155:8453/0x8335… or eip155:8453/0x8335…/6/2/USD Coin";
    tell(`COINSLOT_TOKENS: ${entry} is not like ${forms}`);
    return [];
  });
}

/** An operator's description of a token. A name may contain slashes. */
function toAsset(address: Address, [decimals = "", version, ...name]: string[]): Asset | undefined {
  if (!/^[0-9]{1,2}$/.test(decimals) || !version || name.join("/") === "") return undefined;
  return { address, decimals: Number(decimals), version, name: name.join("/") };
}

/**
 * Returns whether a network's nodes are of two hosts at least, so that one can contradict the
 * other.
 */
export function hasWitnesses({ rpcUrls }: Pick<ConfiguredNetwork, "rpcUrls">): boolean {
  return haveWitnesses(rpcUrls.filter(isHttpUrl));
}

/** Returns whether a text is a URL for JSON-RPC over HTTP. */
export function isHttpUrl(url: string): boolean {
  return URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
}
