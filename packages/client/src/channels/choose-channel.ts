import {
  type Address,
  type ChannelConfig,
  type ChannelOffer,
  channelIdOf,
  type Hex,
  type Network,
  toLowerHex,
} from "@coinslot/protocol";
import { keccak256, stringToHex } from "viem";
import { inBucket, type SpendableAsset } from "../budget/spending-policy.ts";
import { type Candidate, chooseRequirements, refuse } from "../offer/choose-requirements.ts";
import type { Refusal } from "../offer/offer-refused-error.ts";
import type { OfferedWay, Protocol } from "../wires/wire.ts";
import type { ChannelContext } from "./channel-options.ts";
import type { ChannelStore } from "./channel-store.ts";

/** An entry of an offer that is paid by a channel. */
export interface ChannelCandidate extends Candidate {
  channel: ChannelOffer;
  writeChannel: NonNullable<OfferedWay["writeChannel"]>;
}

/** Payable entries for channels, best first, and refused ones. Sends no request. */
export function findChannels(options: {
  ways: readonly OfferedWay[];
  protocols: readonly Protocol[];
  assets: readonly SpendableAsset[];
  networks: ReadonlySet<Network>;
  channels: Pick<ChannelContext, "maxWithdrawDelaySeconds">;
}): { candidates: ChannelCandidate[]; refusals: Refusal[] } {
  const ways = options.ways
    .filter(({ channel }) => channel !== undefined)
    .map((way) => ({ ...way, fault: undefined }));
  const { candidates, refusals } = chooseRequirements({ ...options, ways });
  const found: ChannelCandidate[] = [];
  for (const candidate of candidates) {
    const { channel, writeChannel } = candidate.way;
    if (channel === undefined || writeChannel === undefined) continue;
    const { withdrawDelay } = channel;
    if (withdrawDelay > options.channels.maxWithdrawDelaySeconds) {
      const text = `The seller could hold a deposit for ${withdrawDelay} s, more than channels.maxWithdrawDelaySeconds`;
      refusals.push(refuse(candidate, "unsupported_offer", text));
    } else found.push({ ...candidate, channel, writeChannel });
  }
  return { candidates: found, refusals };
}

/**
 * Decides whether a channel pays, and not another way: it is not dearer, and the seller is known
 * where `exactFirst` asks for that.
 */
export function prefersChannel(options: {
  channel: ChannelCandidate;
  /** The best other way, if there is one. */
  other: Candidate | undefined;
  origin: string;
  exactFirst: boolean;
  store: Pick<ChannelStore, "purchasesAt" | "list">;
}): boolean {
  const { channel, other, origin, exactFirst, store } = options;
  if (other === undefined) return true;
  // Prices in different units cannot be compared: the order of the budget has decided.
  if (other.asset.pot !== channel.asset.pot) return false;
  if (inBucket(channel.asset, channel.amount) > inBucket(other.asset, other.amount)) return false;
  if (!exactFirst || store.purchasesAt(origin) > 0) return true;
  return store.list().some((record) => record.origin === origin);
}

/** One channel of a buyer with a seller. */
export interface Lane {
  lane: number;
  id: Hex;
  config: ChannelConfig;
}

/**
 * The channels for one origin and the terms of an offer. The salt follows from origin and number,
 * so a lost store finds them on the chain. Another origin with the same terms has other channels.
 */
export function lanesOf(options: {
  offer: ChannelOffer;
  payer: Address;
  origin: string;
  lanes: number;
}): [Lane, ...Lane[]] {
  const { offer, origin, lanes } = options;
  const payer = toLowerHex(options.payer);
  const { network, receiver, receiverAuthorizer, token, withdrawDelay } = offer;
  const laneAt = (lane: number): Lane => {
    const salt = keccak256(stringToHex(`coinslot channel ${lane} ${origin}`));
    const terms = { receiver, receiverAuthorizer, token, withdrawDelay, salt };
    const config = { payer, payerAuthorizer: payer, ...terms };
    return { lane, config, id: channelIdOf(config, { network }) };
  };
  return [laneAt(0), ...Array.from({ length: lanes - 1 }, (_, index) => laneAt(index + 1))];
}
