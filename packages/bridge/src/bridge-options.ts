import { type Clock, systemClock } from "@coinslot/chain";
import type { Address, Hash, LocalAccount, PublicClient } from "viem";
import { parseEvmAddress } from "./addresses/evm-address.ts";
import { BridgeError } from "./bridge-error.ts";
import type { BridgeChain } from "./chains/bridge-chain.ts";
import { type ChainList, createChainList } from "./chains/chain-list.ts";
import { type Connections, createConnections } from "./chains/connect.ts";

/** The sender: an address, and EIP-1559 signing as in viem's local accounts. */
export type BridgeAccount = Pick<LocalAccount, "address" | "signTransaction">;

/** Options of a bridge. */
export type BridgeOptions = SourceOptions & {
  /** A viem account; or an address, which can quote and track but not send. */
  account: BridgeAccount | Address;
  /**
   * The most that LayerZero may take for a transfer, in the native coin of the source chain (18
   * decimals).
   */
  bridgeMaxFee: bigint;
  /** The most that LayerZero and the gas may cost together. Default: no bound. */
  maxTotalFee?: bigint | undefined;
  /**
   * RPC URLs of the target chains, by key, for seeing tokens arrive. Of several, the next is asked
   * when one fails.
   */
  targetRpcUrls?: Readonly<Record<string, string | readonly string[]>> | undefined;
  /** Further chains. One with the key of a chain in the table takes its place. */
  chains?: readonly BridgeChain[] | undefined;
  /** Timeout of a transaction's mining. Default 180 000. */
  receiptTimeoutMs?: number | undefined;
  clock?: Clock | undefined;
};

/** The source chain: the one behind the URL or the client. */
export type SourceOptions =
  | { rpcUrl: string | readonly string[]; client?: undefined }
  | { client: PublicClient; rpcUrl?: undefined };

/** The options, read and checked. */
export interface BridgeContext {
  owner: Address;
  /** `undefined`: read-only. */
  signer: BridgeAccount | undefined;
  bridgeMaxFee: bigint;
  maxTotalFee: bigint | undefined;
  chains: ChainList;
  connections: Connections;
  receiptTimeoutMs: number;
  clock: Clock;
  /** By transfer, since when its nonce seems used. Waits may be shorter than the grace time. */
  replacedSince: Map<Hash, number>;
}

/**
 * Reads the options.
 *
 * @throws BridgeError `invalid_configuration`, which names all faults at once
 */
export function readOptions(options: BridgeOptions): BridgeContext {
  const problems: string[] = [];
  const { bridgeMaxFee, maxTotalFee, receiptTimeoutMs = 180_000 } = options;
  const signer = typeof options.account === "string" ? undefined : options.account;
  const owner = parseEvmAddress(String(signer?.address ?? options.account));
  if (owner instanceof Error) problems.push(`account ${owner.message}`);
  if (!isFee(bridgeMaxFee)) problems.push("bridgeMaxFee is not a bigint of zero or more");
  if (maxTotalFee !== undefined && !isFee(maxTotalFee)) {
    problems.push("maxTotalFee is not a bigint of zero or more");
  }
  if (!(receiptTimeoutMs > 0)) problems.push("receiptTimeoutMs is not above zero");
  const chains = createChainList(options.chains ?? [], problems);
  const targets = readTargets(options, chains, problems);
  const source = readSource(options, problems);
  if (source === undefined || owner instanceof Error || problems.length > 0) {
    throw invalid("createBridge", problems);
  }
  return {
    owner,
    signer,
    bridgeMaxFee,
    maxTotalFee,
    chains,
    connections: createConnections({ source, targets }),
    receiptTimeoutMs,
    clock: options.clock ?? systemClock,
    replacedSince: new Map(),
  };
}

/**
 * Reads the options for asking one chain of the table.
 *
 * @param subject the name of the called function
 * @throws BridgeError `invalid_configuration`
 */
export function readChainOptions(
  subject: string,
  options: SourceOptions & { chains?: readonly BridgeChain[] | undefined },
): Pick<BridgeContext, "chains" | "connections"> {
  const problems: string[] = [];
  const chains = createChainList(options.chains ?? [], problems);
  const source = readSource(options, problems);
  if (source === undefined || problems.length > 0) throw invalid(subject, problems);
  return { chains, connections: createConnections({ source, targets: new Map() }) };
}

function invalid(subject: string, problems: readonly string[]): BridgeError {
  return new BridgeError("invalid_configuration", `${subject}: ${problems.join("; ")}`);
}

function readTargets(
  { targetRpcUrls = {} }: BridgeOptions,
  chains: ChainList,
  problems: string[],
): Map<string, readonly string[]> {
  const targets = new Map<string, readonly string[]>();
  for (const [key, given] of Object.entries(targetRpcUrls)) {
    const name = `targetRpcUrls.${key}`;
    const rpcUrls = toUrls(given);
    if (chains.byKey(key)?.type !== "evm") problems.push(`${name}: unknown EVM chain`);
    checkUrls(name, rpcUrls, problems);
    targets.set(key, rpcUrls);
  }
  return targets;
}

function readSource({ client, rpcUrl }: SourceOptions, problems: string[]) {
  if ((client === undefined) === (rpcUrl === undefined)) {
    problems.push("give exactly one of rpcUrl and client");
    return undefined;
  }
  if (client !== undefined) return { client };
  const rpcUrls = toUrls(rpcUrl ?? []);
  checkUrls("rpcUrl", rpcUrls, problems);
  return { rpcUrls };
}

function toUrls(given: string | readonly string[]): readonly string[] {
  return typeof given === "string" ? [given] : given;
}

function checkUrls(name: string, urls: readonly string[], problems: string[]): void {
  const isHttp = (url: string) => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
  // The URL itself may hold a key, so it is never repeated.
  if (urls.length === 0 || !urls.every(isHttp)) problems.push(`${name} needs http or https URLs`);
}

function isFee(value: unknown): boolean {
  return typeof value === "bigint" && value >= 0n;
}
