import {
  type Address,
  channelContracts,
  isSameAddress,
  isWellFormedAddress,
  type Network,
  toLowerHex,
} from "@coinslot/protocol";
import { defaultCallerGasPerHour } from "../channels/channel-settings.ts";
import type { HostedChannelSettings } from "../channels/hosted/hosted-settings.ts";
import { type ClaimAccount, readClaimAccount } from "./channel-options.ts";

/** A seller elsewhere, who has a key for this facilitator. */
export interface ChannelCaller {
  /** The owner of the key, as `facilitatorRouter` names it. */
  name: string;
  /** Recipients of its channels: it may have escrow moved for these alone. */
  receivers: readonly Address[];
}

/** Channels that a hosted facilitator serves to callers. The same in all processes of a ledger. */
export interface HostedChannelOptions {
  callers: readonly ChannelCaller[];
  /**
   * Signs claims and refunds for callers that leave their signature out: `receiverAuthorizer` of
   * `/supported`. It is in the config of every channel of theirs, so change it like an address.
   * Default: none, and callers sign.
   */
  authorizer?: ClaimAccount | undefined;
  /** Gas that one caller may use in an hour, on each network. Default 60,000,000. */
  gasPerHour?: bigint | undefined;
  /** Networks with channels. Default: all of the facilitator. */
  networks?: readonly Network[] | undefined;
}

/** A claim of a hundred rows takes 3.5 million at most. */
const minGasPerHour = 5_000_000n;
const maxGasPerHour = 1_000_000_000_000n;

/** Reads the options of channels for callers. No problem repeats a secret. Never throws. */
export function readHostedChannelOptions(
  options: HostedChannelOptions | undefined,
  {
    networks,
    sellers,
  }: {
    networks: readonly { network: Network; relayers: readonly { address: Address }[] }[];
    /** Keys of the channels that this facilitator sells by itself. */
    sellers: readonly { address: Address }[];
  },
): { settings: HostedChannelSettings | undefined; problems: string[] } {
  if (options === undefined) return { settings: undefined, problems: [] };
  const problems: string[] = [];
  const { callers, authorizer, gasPerHour = defaultCallerGasPerHour } = options;
  const receivers = new Map<string, ReadonlySet<Address>>();
  if (callers.length === 0) problems.push("hostedChannels.callers is empty: name at least one");
  for (const { name, receivers: addresses } of callers) {
    const place = `hostedChannels.callers: ${name}`;
    if (receivers.has(name)) problems.push(`${place} is named twice`);
    if (addresses.length === 0) problems.push(`${place} has no receivers`);
    if (!addresses.every((address) => isWellFormedAddress(address))) {
      problems.push(`${place} has a receiver that is no address, or has a wrong checksum`);
    }
    receivers.set(name, new Set(addresses.map(toLowerHex)));
  }
  const place = "hostedChannels.authorizer";
  const signer = authorizer && readClaimAccount(authorizer, place, problems);
  if (signer && sellers.some(({ address }) => isSameAddress(address, signer.address))) {
    problems.push(`${place} is that of channels: two sellers would sell on one voucher`);
  }
  for (const { network, relayers } of networks) {
    if (signer && relayers.some(({ address }) => isSameAddress(address, signer.address))) {
      problems.push(`${place} is a relayer of ${network}: give it its own key`);
    }
  }
  const isGas = typeof gasPerHour === "bigint";
  if (!isGas || gasPerHour < minGasPerHour || gasPerHour > maxGasPerHour) {
    problems.push(
      `hostedChannels.gasPerHour must be a bigint from ${minGasPerHour} to ${maxGasPerHour}`,
    );
  }
  const named = options.networks ?? networks.map(({ network }) => network);
  if (options.networks?.length === 0) problems.push("hostedChannels.networks is empty: name one");
  for (const network of named) {
    if (networks.some((each) => each.network === network)) continue;
    problems.push(`hostedChannels.networks: the facilitator does not serve ${network}`);
  }
  return {
    problems,
    settings: {
      contract: toLowerHex(channelContracts.settlement),
      networks: new Set(named),
      receivers,
      signer,
      gasPerHour,
    },
  };
}
