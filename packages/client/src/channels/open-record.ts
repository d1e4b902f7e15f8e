import { refuse } from "../offer/choose-requirements.ts";
import type { Refusal, RefusalCode } from "../offer/offer-refused-error.ts";
import type { ChannelLedger } from "./channel-ledger.ts";
import type { ChannelRecord } from "./channel-record.ts";
import type { ChannelCandidate, Lane } from "./choose-channel.ts";
import { agreedSums, hasEscrow, readByAll, readChannel } from "./read-channel.ts";

/**
 * Loads the record of a lane. A channel that the store does not know begins with what the chain
 * shows: after a lost store, all that is claimed counts as a ceiling once more. The next voucher
 * is for that and the price. So the lowest claimed sum of all endpoints counts, once each of them
 * has returned it.
 */
export async function openRecord(
  { context, store }: ChannelLedger,
  { lane, candidate, url }: { lane: Lane; candidate: ChannelCandidate; url: URL },
): Promise<ChannelRecord | Refusal> {
  const usedAt = context.now();
  const known = store.find(lane.id);
  if (known !== undefined) return { ...known, usedAt, url: url.href };
  const no = (code: RefusalCode, text: string) => refuse(candidate, code, `Channel: ${text}`);
  const { network } = candidate.channel;
  const nodes = context.chains.nodesOf(network);
  const { id, config } = lane;
  const channel = { id, config, deposit: undefined };
  const [hasContracts, chain] = await Promise.all([
    hasEscrow(nodes, network),
    readChannel(nodes, channel),
  ]);
  if (hasContracts === false) {
    return no("unsupported_offer", `${network} has no escrow contract at its address`);
  }
  if (hasContracts === undefined || chain === undefined) {
    return no("balance_unreadable", "no endpoint returned the escrow contract");
  }
  const others = chain.claimed > 0n ? await readByAll(nodes, channel) : [];
  if (chain.claimed > 0n && others.length < nodes.length) {
    return no("balance_unreadable", "not every endpoint returned what was claimed of it");
  }
  const { balance, claimed } = agreedSums([chain, ...others]);
  return store.create({
    id,
    network,
    config,
    origin: url.origin,
    url: url.href,
    lane: lane.lane,
    ceiling: claimed,
    charged: claimed,
    spent: 0n,
    balance,
    claimed,
    deposit: undefined,
    isWithdrawing: chain.withdrawal !== undefined,
    usedAt,
  });
}
