import { type Clock, getChainPreset, systemClock } from "@coinslot/chain";
import {
  type Address,
  type Asset,
  ConfigurationError,
  chainIdOf,
  isNetwork,
  isSameAddress,
  isWellFormedAddress,
  knownAsset,
  type Network,
  toLowerHex,
} from "@coinslot/protocol";
import type { ChannelSettings } from "../channels/channel-settings.ts";
import type { HostedChannelSettings } from "../channels/hosted/hosted-settings.ts";
import type { HookSet } from "../hooks.ts";
import type { RetentionTimes } from "../ledger/ledger-limits.ts";
import { type Logger, silentLogger } from "../logger.ts";
import type { OperatorListener } from "../operators/serve-over-http.ts";
import type { RelayerSigner } from "../settle/relay/relayer-signer.ts";
import { defaultCallGas } from "../simulation/simulator.ts";
import { readChannelOptions } from "./channel-options.ts";
import type {
  Depth,
  FacilitatorNetworkOptions,
  FacilitatorOptions,
  FeeOptions,
} from "./facilitator-options.ts";
import { readHostedChannelOptions } from "./hosted-channel-options.ts";
import { readOperators } from "./operator-options.ts";
import { readRpcUrls } from "./read-rpc-urls.ts";
import { type RefundSettings, readRefundOptions } from "./refund-options.ts";
import { readRelayer, readRetiring } from "./relayer-account.ts";
import { readRetention } from "./retention-options.ts";
import { readWebhooks, type WebhookEndpoint } from "./webhook-options.ts";

/** A network as configured, with every default filled in. */
export interface NetworkConfiguration {
  network: Network;
  chainId: number;
  rpcUrls: readonly string[];
  relayers: readonly [RelayerSigner, ...RelayerSigner[]];
  /** They plan nothing. None is in `relayers`. */
  retiring: readonly RelayerSigner[];
  /** In lower case; `undefined`: every token. */
  assets: readonly Address[] | undefined;
  /**
   * Tokens whose EIP-712 domain is known beforehand: those configured with one, and the usual one.
   */
  domains: readonly Asset[];
  serveAfter: (amount: bigint) => number;
  finalAfter: number;
  fees: FeeOptions & { maxFeePerGas: bigint };
  blockTimeSeconds: number | undefined;
  callGas: bigint;
  callsPerSecond: number | undefined;
  minimumBalance: bigint;
  warningBalance: bigint;
}

/** Configuration of a facilitator: options without static faults. */
export interface FacilitatorConfiguration {
  networks: readonly [NetworkConfiguration, ...NetworkConfiguration[]];
  ledger: string;
  startTimeoutMs: number;
  retention: RetentionTimes;
  refunds: RefundSettings;
  /** `undefined`: channels are neither followed nor claimed. */
  channels: ChannelSettings | undefined;
  /** `undefined`: no channels are served to callers. */
  hostedChannels: HostedChannelSettings | undefined;
  /** Where the operator's commands are served over HTTP. */
  operators: OperatorListener | undefined;
  webhooks: readonly WebhookEndpoint[] | undefined;
  logger: Logger;
  hooks: Partial<HookSet>;
  clock: Clock;
  now: () => number;
}

const callGasRange = { least: 50_000n, most: 5_000_000n };
const ledgerUrl = /^(?:sqlite:.+|postgres(?:ql)?:\/\/.+)$/;

/**
 * Checks options for all faults that need no chain and no database.
 *
 * @throws ConfigurationError with all problems. None repeats a URL or a secret.
 */
export function readFacilitatorOptions(options: FacilitatorOptions): FacilitatorConfiguration {
  const { ledger = "", logger = silentLogger, hooks = {} } = options;
  const { clock = systemClock, now = Date.now, startTimeoutSeconds = 5 } = options;
  const { networks: entries = [] } = options;
  const problems: string[] = [];
  const networks = entries.flatMap((entry, index) => {
    const read = readNetwork(entry, `networks[${index}]`);
    problems.push(...read.problems);
    return read.configuration ?? [];
  });
  problems.push(...findRepeatedNetworks(entries));
  if (!ledgerUrl.test(ledger)) {
    problems.push(
      "ledger is not set, or has an unknown URL: sqlite:./coinslot.db, or postgres://… where several processes share it",
    );
  }
  if (!(startTimeoutSeconds >= 0 && startTimeoutSeconds <= 3_600)) {
    problems.push("startTimeoutSeconds must be from 0 to 3600");
  }
  const { retention, problems: retentionProblems } = readRetention(options);
  const { settings: refunds, problems: refundProblems } = readRefundOptions(options.refunds);
  const { listener: operators, problems: operatorProblems } = readOperators(options.operators);
  const { webhooks, problems: webhookProblems } = readWebhooks(options.webhooks);
  const channels = readChannelOptions(options.channels, entries[0]?.relayer, networks);
  problems.push(...retentionProblems, ...refundProblems, ...operatorProblems, ...webhookProblems);
  const hostedChannels = readHostedChannelOptions(options.hostedChannels, {
    networks,
    sellers: channels.settings?.signers ?? [],
  });
  problems.push(...channels.problems, ...hostedChannels.problems);
  for (const { network, relayers } of networks) {
    if (relayers.some(({ address }) => isSameAddress(address, refunds.float ?? "0x"))) {
      problems.push(`refunds: the float is a relayer of ${network}: give it an account of its own`);
    }
  }
  const [first, ...others] = networks;
  if (entries.length === 0) problems.push("networks is empty: name at least one");
  if (problems.length > 0 || first === undefined) {
    throw new ConfigurationError("The facilitator", problems);
  }
  return {
    networks: [first, ...others],
    ledger,
    startTimeoutMs: startTimeoutSeconds * 1000,
    retention,
    refunds,
    channels: channels.settings,
    hostedChannels: hostedChannels.settings,
    operators,
    webhooks,
    logger,
    hooks,
    clock,
    now,
  };
}

function readNetwork(
  options: FacilitatorNetworkOptions,
  place: string,
): { configuration?: NetworkConfiguration; problems: string[] } {
  const problems: string[] = [];
  const { network, callGas = defaultCallGas, blockTimeSeconds, callsPerSecond } = options;
  const isNamed = isNetwork(network);
  if (!isNamed) problems.push("network must be an EVM chain in CAIP-2 form, such as eip155:9745");
  const preset = isNamed ? getChainPreset(chainIdOf(network)) : undefined;

  const { rpcUrls, problems: urlProblems } = readRpcUrls(options);
  const relayer = readRelayer(options.relayer);
  const retired = readRetiring(options.retiringRelayers ?? [], relayer.ok ? relayer.accounts : []);
  const { assets, domains, problems: assetProblems } = readAssets(options);
  problems.push(...urlProblems, ...(relayer.ok ? [] : relayer.problems), ...retired.problems);
  problems.push(...assetProblems);

  const { serveAfter = 0, finalAfter = preset?.finality.depth ?? 0 } = options;
  if (typeof serveAfter === "number" && !isDepth(serveAfter)) {
    problems.push("serveAfter must be a whole number of blocks, 0 for as soon as it is included");
  }
  if (!isDepth(finalAfter)) problems.push("finalAfter must be a whole number of blocks");
  else if (typeof serveAfter === "number" && serveAfter > finalAfter) {
    problems.push("finalAfter is less than serveAfter: served payments would not be watched");
  }
  const isGas = typeof callGas === "bigint";
  if (!isGas || callGas < callGasRange.least || callGas > callGasRange.most) {
    problems.push(`callGas must be a bigint from ${callGasRange.least} to ${callGasRange.most}`);
  }
  if (blockTimeSeconds !== undefined && !(blockTimeSeconds > 0 && blockTimeSeconds <= 3_600)) {
    problems.push("blockTimeSeconds must be more than 0, and an hour at most");
  }
  if (callsPerSecond !== undefined && !(callsPerSecond >= 1)) {
    problems.push("callsPerSecond must be at least 1; leave it out for no limit of our own");
  }
  const { maxFeePerGas = preset?.maxFeePerGas ?? 0n, maxPriorityFeePerGas } = options.fees ?? {};
  const fees = { maxFeePerGas, maxPriorityFeePerGas };
  problems.push(...findFeeProblems(fees));
  const { minimumBalance = preset?.minimumRelayerBalance ?? 0n } = options;
  const isBalance = typeof minimumBalance === "bigint";
  const { warningBalance = isBalance ? minimumBalance * 10n : 0n } = options;
  if (!isBalance || minimumBalance < 0n) {
    problems.push("minimumBalance must be a bigint, not negative");
  } else if (typeof warningBalance !== "bigint") {
    problems.push("warningBalance must be a bigint");
  } else if (warningBalance < minimumBalance) {
    problems.push("warningBalance is less than minimumBalance: the warning would come too late");
  }

  const named = problems.map((problem) => `${place}: ${problem}`);
  if (problems.length > 0 || !relayer.ok || !isNamed) return { problems: named };
  return {
    problems: [],
    configuration: {
      network,
      chainId: chainIdOf(network),
      rpcUrls,
      relayers: relayer.accounts,
      retiring: retired.accounts,
      assets,
      domains,
      serveAfter: depthOf(serveAfter, finalAfter),
      finalAfter,
      fees,
      blockTimeSeconds: blockTimeSeconds ?? secondsOf(preset?.blockTimeMs),
      callGas,
      callsPerSecond,
      minimumBalance,
      warningBalance,
    },
  };
}

function findFeeProblems(fees: NetworkConfiguration["fees"]): string[] {
  const wrong = Object.entries(fees).flatMap(([name, fee]) =>
    fee === undefined || (typeof fee === "bigint" && fee >= 0n)
      ? []
      : [`fees.${name} must be a bigint, not negative`],
  );
  if (wrong.length > 0) return wrong;
  const { maxFeePerGas, maxPriorityFeePerGas = 0n } = fees;
  if (maxPriorityFeePerGas <= maxFeePerGas) return [];
  return [
    `fees.maxPriorityFeePerGas is more than fees.maxFeePerGas (${maxFeePerGas}), which includes it`,
  ];
}

function readAssets({ network, assets }: FacilitatorNetworkOptions): {
  assets: Address[] | undefined;
  domains: Asset[];
  problems: string[];
} {
  const usual = isNetwork(network) ? knownAsset(network) : undefined;
  if (assets === undefined)
    return { assets: undefined, domains: usual ? [usual] : [], problems: [] };
  if (assets.length === 0) {
    return {
      assets: [],
      domains: [],
      problems: ["assets is empty: leave it out to serve every token"],
    };
  }
  const problems: string[] = [];
  const addresses: Address[] = [];
  const domains: Asset[] = [];
  for (const [index, asset] of assets.entries()) {
    const address = typeof asset === "string" ? asset : asset.address;
    if (!isWellFormedAddress(address)) {
      problems.push(`assets[${index}] is not an address, or has a wrong checksum`);
      continue;
    }
    if (addresses.some((other) => isSameAddress(other, address))) {
      problems.push(`assets[${index}] is named twice: ${address}`);
    }
    addresses.push(toLowerHex(address));
    if (typeof asset !== "string") domains.push(asset);
    else if (usual !== undefined && isSameAddress(usual.address, asset)) domains.push(usual);
  }
  return { assets: addresses, domains, problems };
}

function findRepeatedNetworks(networks: readonly FacilitatorNetworkOptions[]): string[] {
  return networks.flatMap(({ network }, index) => {
    const first = networks.findIndex((other) => other.network === network);
    if (first === index) return [];
    return [`networks[${index}]: ${network} is named before, by networks[${first}]`];
  });
}

function isDepth(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

/**
 * A depth by amount is the seller's own function. A result that is no depth counts as the most
 * careful one.
 */
function depthOf(depth: Depth, maxCareful: number): (amount: bigint) => number {
  if (typeof depth === "number") return () => depth;
  return function depthByAmount(amount) {
    const chosen = depth(amount);
    return isDepth(chosen) ? Math.min(chosen, maxCareful) : maxCareful;
  };
}

const secondsOf = (ms: number | undefined) => (ms === undefined ? undefined : ms / 1000);
