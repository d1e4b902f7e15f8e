import type { ChannelConfig, Hex } from "@coinslot/protocol";
import { isDatabaseError } from "@coinslot/storage";
import type { ChannelKey } from "../../ledger/channels/channel.ts";
import type { ChannelReading, ChannelState } from "../../ledger/channels/channel-state.ts";
import { type ChannelWatch, readWatch } from "../../ledger/channels/channel-watch.ts";
import { openChannel, readChannel } from "../../ledger/channels/open-channel.ts";
import { readMirrored } from "../../ledger/channels/read-mirrored.ts";
import { maxUnclaimedFactor } from "../channel-settings.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { mirrorChannels } from "./mirror-channels.ts";
import type { ChannelObservation, ChannelObserver, ObservedChannel } from "./observed-channel.ts";
import { readByEach } from "./read-by-each.ts";
import { readChannels } from "./read-channels.ts";

/** Age of the watcher's row that is as good as new: it decides in quarters of an hour. */
const freshMs = 1_000;
const retryAfterSeconds = 5;
/** Channels whose last look is remembered. */
const maxLooks = 10_000;

/**
 * The observer of one process, kept by its watcher. Vouchers count while the watcher's last block
 * is younger than a quarter of the channel's delay.
 */
export function createChannelObserver(
  channels: ChannelsContext,
  {
    foundAt,
    movedAt,
    onVoucher,
  }: {
    /**
     * `seenAt` of the watcher's row as this process found it: 0 without a row, `undefined` until it
     * was read.
     */
    foundAt: () => number | undefined;
    /** When the watcher of this process had its last new block; `undefined`: it has had none. */
    movedAt: () => number | undefined;
    onVoucher: () => void;
  },
): ChannelObserver {
  const { context, settings, settlement, place } = channels;
  const { ledger, clock } = context;
  let cached: { watch: ChannelWatch | undefined; at: number } | undefined;
  const looks = createLooks();

  async function watchNow(): Promise<ChannelWatch | undefined> {
    // Nothing may be relied on yet while a reading is not trusted, so it is read again.
    if (cached === undefined || clock.now() - cached.at >= freshMs || !isSince(cached.watch)) {
      const at = clock.now();
      cached = { watch: await readWatch(ledger, place), at };
    }
    return cached.watch;
  }

  /** Written since this process began, by whatever date: a clock may have been set back since. */
  function isSince(watch: ChannelWatch | undefined): boolean {
    const found = foundAt();
    return watch !== undefined && found !== undefined && watch.seenAt !== found;
  }

  /**
   * The watcher's row, while it may be relied on. One from before this process began may be that of
   * a ledger whose processes were all down: the first round since then decides.
   */
  async function trustedWatch(config: ChannelConfig): Promise<ChannelWatch | undefined> {
    const watch = await watchNow();
    if (watch === undefined || !isSince(watch)) return undefined;
    const ageSeconds = ledger.now() / 1_000 - watch.block.time;
    // This machine's date may be wrong. The time that has passed here is not, nor is the
    // database's.
    const at = movedAt();
    const stillSeconds = (at === undefined ? watch.ageMs : clock.now() - at) / 1_000;
    return Math.max(ageSeconds, stillSeconds) <= config.withdrawDelay / 4 ? watch : undefined;
  }

  /**
   * Whether an event may be missing that the watcher would find in the next audit: it reads the
   * channels alone that have unclaimed money, and not too little to be claimed. Another one that
   * was not charged for a while may have been emptied behind a node that hides events.
   */
  function isUnaudited(
    { channel, state }: ObservedChannel,
    { withdrawDelay }: ChannelConfig,
  ): boolean {
    const { charged, last, channelId } = channel;
    if (charged > state.totalClaimed && charged - state.totalClaimed >= settings.claimCost) {
      return false;
    }
    const delayMs = withdrawDelay * 1_000;
    if (last !== undefined && Math.abs(ledger.now() - last.at) <= delayMs / 4) return false;
    // As often as an audit would, whatever a caller asks for.
    return clock.now() - looks.at(channelId) > delayMs / 20;
  }

  async function observe(channelId: Hex, config: ChannelConfig): Promise<ChannelObservation> {
    onVoucher();
    const key: ChannelKey = { ...place, channelId };
    const watch = await trustedWatch(config);
    if (watch === undefined) return { kind: "stale", retryAfterSeconds };
    const seen = await readSeen(key, config, watch);
    if (seen !== undefined && !isUnaudited(seen, config)) return seen;
    try {
      return await readAnew(key, config);
    } catch (err) {
      if (isDatabaseError(err)) throw err;
      context.logger.warn({ err, network: place.network }, "a channel could not be read");
      return { kind: "stale", retryAfterSeconds };
    }
  }

  /** Reads a channel that this ledger does not know, or whose mirror may lack an event. */
  async function readAnew(key: ChannelKey, config: ChannelConfig): Promise<ChannelObservation> {
    const { channelId } = key;
    const beganAt = clock.now();
    const header = await settlement.network.watcher.read(0);
    if ((await readChannel(ledger, key)) === undefined) {
      const block = { number: Number(header.number), hash: header.hash };
      const { contract } = place;
      const read = await readChannels(settlement.network, { contract, ids: [channelId], block });
      const reading = read.get(channelId);
      if (reading === undefined || reading.balance === 0n) return { kind: "absent" };
      const totalClaimed = await leastClaimed(channels, channelId, reading);
      if (totalClaimed === undefined) return { kind: "stale", retryAfterSeconds };
      await openChannel(ledger, { ...key, config, totalClaimed });
    }
    // From here on the watcher knows the channel. So a block that it has not read yet, or this one,
    // has each event: a head behind it could hide one that the watcher took for another seller's.
    const watched = await readWatch(ledger, place);
    const head = await settlement.network.watcher.read(0);
    if (watched === undefined || Number(head.number) < watched.block.number) {
      return { kind: "stale", retryAfterSeconds: 1 };
    }
    await mirrorChannels(channels, { wanted: [{ channelId }], head, lease: undefined });
    const seen = await readSeen(key, config, watched);
    if (seen !== undefined) looks.note(channelId, beganAt);
    return seen ?? { kind: "stale", retryAfterSeconds: 1 };
  }

  /** The channel by its rows; `undefined` where its mirror may lack an event. */
  async function readSeen(
    key: ChannelKey,
    config: ChannelConfig,
    { since, block }: ChannelWatch,
  ): Promise<ObservedChannel | undefined> {
    const found = await readMirrored(ledger, key);
    if (found === undefined) return undefined;
    const { channel, state } = found;
    if (state.block.number < since) return undefined;
    return {
      kind: "observed",
      channel,
      state,
      isSelling: isSelling(state, config, Math.max(ledger.now() / 1_000, block.time)),
      maxUnclaimed: settings.mostAtRisk * maxUnclaimedFactor,
    };
  }

  return { observe };
}

/**
 * The lowest claimed sum of all endpoints; `undefined` while one is awaited. Charging begins there
 * for good: a sum that one endpoint makes up would let the channel sell nothing, ever.
 */
async function leastClaimed(
  channels: ChannelsContext,
  channelId: Hex,
  { totalClaimed }: ChannelReading,
): Promise<bigint | undefined> {
  if (totalClaimed === 0n) return totalClaimed;
  const votes = (await readByEach(channels, { ids: [channelId] })).get(channelId);
  if (votes === undefined || votes.awaited > 0) return undefined;
  let least = totalClaimed;
  for (const vote of votes.readings) if (vote.totalClaimed < least) least = vote.totalClaimed;
  return least;
}

/** When channels were read here last; the oldest is forgotten where there are too many. */
function createLooks() {
  const looks = new Map<Hex, number>();
  return {
    at: (channelId: Hex) => looks.get(channelId) ?? Number.NEGATIVE_INFINITY,
    note(channelId: Hex, at: number) {
      looks.delete(channelId);
      looks.set(channelId, at);
      const [oldest] = looks.keys();
      if (looks.size > maxLooks && oldest !== undefined) looks.delete(oldest);
    },
  };
}

/**
 * False from a tenth of the delay before its end on: what is sold then may not be claimed in time.
 *
 * @param time Unix seconds, by this machine's clock or the chain's: the later one
 */
function isSelling(
  { withdrawal }: ChannelState,
  { withdrawDelay }: ChannelConfig,
  time: number,
): boolean {
  if (withdrawal === undefined) return true;
  return time < withdrawal.initiatedAt + withdrawDelay * 0.9;
}
