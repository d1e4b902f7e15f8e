import { settledHistorySeconds } from "../chain/chain-reader.ts";
import type { PayingFetchContext } from "../paying-fetch-options.ts";
import { untilAborted } from "../sign/book-and-sign.ts";
import { type ChannelLedger, isBookedAbove, lookAtChain, lowerExposure } from "./channel-ledger.ts";
import type { ChannelContext } from "./channel-options.ts";
import type { ChannelRecord } from "./channel-record.ts";

/** Most channels of expired deposits per call. The first is random: none hides another for ever. */
const lookedAtOnce = 5;

/**
 * Creates a function that frees room which channels take without need, in the budget and in
 * `locked`: of deposits that have expired, by the word of two hosts, and of bookings above what is
 * stored. Their sellers may never be asked again, and a kill between the two files leaves such a
 * booking. A channel in use is left alone.
 *
 * It resolves to whether there is more room. It works at its first call alone: nodes are asked, and
 * a purchase waits. It throws the signal's reason when the caller aborts.
 */
export function createFreeRoom(
  context: PayingFetchContext,
  signal: AbortSignal | undefined,
): () => Promise<boolean> {
  let isDone = false;
  return async () => {
    const { channels } = context;
    if (channels === undefined || isDone) return false;
    isDone = true;
    return untilAborted(
      freeChannels(context, channels).catch(() => false),
      signal,
    );
  };
}

async function freeChannels(
  context: PayingFetchContext,
  channels: ChannelContext,
): Promise<boolean> {
  const { store, locks } = await channels.open();
  const ledger: ChannelLedger = { context, store };

  /** Resolves to the number of channels for which `free` has found something. */
  async function freeEach(
    records: readonly ChannelRecord[],
    free: (record: ChannelRecord) => Promise<boolean>,
  ): Promise<number> {
    const freed = await Promise.allSettled(
      records.map(async ({ id }) => {
        const held = await locks.tryAcquire(id);
        try {
          const record = held && store.find(id);
          return record !== undefined && (await free(record));
        } finally {
          held?.release();
        }
      }),
    );
    return freed.filter((each) => each.status === "fulfilled" && each.value).length;
  }

  const booked = await context.budget.exposures();
  const all = store.list();
  const above = all.filter((record) => isBookedAbove(ledger, record, booked));
  const lowered = await freeEach(above, async (record) => {
    await lowerExposure(ledger, record);
    return true;
  });
  const ended = await freeEach(findExpired(context, all), async (record) => {
    const seen = await lookAtChain(ledger, record);
    return seen !== undefined && seen.record.deposit === undefined;
  });
  return lowered + ended > 0;
}

/** Own channels whose deposit has expired, from a random one on. */
function findExpired(
  { account, chains, now, randomBytes }: PayingFetchContext,
  all: readonly ChannelRecord[],
): ChannelRecord[] {
  const latest = Math.floor(now() / 1000) - settledHistorySeconds;
  const payer = account.address.toLowerCase();
  const expired = all.filter(
    ({ deposit, network, config }) =>
      config.payer === payer &&
      deposit !== undefined &&
      deposit.validBefore < latest &&
      chains.hasWitnesses(network),
  );
  const random = Buffer.from(randomBytes(4)).readUInt32BE();
  const from = expired.length === 0 ? 0 : random % expired.length;
  return [...expired.slice(from), ...expired.slice(0, from)].slice(0, lookedAtOnce);
}
