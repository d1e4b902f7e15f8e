import { randomUUID } from "node:crypto";
import { sleep } from "@coinslot/chain";
import { createKeyedSingleFlight } from "@coinslot/concurrency";
import type { Address, Hex } from "@coinslot/protocol";
import {
  type ChannelRefund,
  findOpenRefunds,
  type OpenRefund,
  readRefund,
} from "../../ledger/channels/channel-refunds.ts";
import type { ChannelReading } from "../../ledger/channels/channel-state.ts";
import { type LockOutcome, lockRefund, type NewRefund } from "../../ledger/channels/lock-refund.ts";
import { createWorkLease } from "../../ledger/work-lease.ts";
import { startPollLoop } from "../../settle/pace/poll-loop.ts";
import { isReady } from "../../settle/relay/relayer-context.ts";
import { refundRows } from "../channel-settings.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { readChannels } from "../watch/read-channels.ts";
import { advanceChannelRefunds } from "./advance-channel-refunds.ts";
import type { RefundMemory } from "./refund-round.ts";

/** Refunds of one network's channels, in one process. */
export interface NetworkRefunds {
  /** Gas of a refund, in the token's smallest unit. */
  readonly cost: bigint;
  /** Whether this process has the key that signs a channel's refunds. */
  signs(receiverAuthorizer: Address): boolean;
  /**
   * Locks a channel, on the disk before it resolves, and sends its refund.
   *
   * @param refund.id of an operator's act: the limits do not hold for it
   */
  begin(
    refund: Omit<NewRefund, "id" | "sinceNumber"> & { id?: string | undefined },
  ): Promise<LockOutcome | { outcome: "locked"; id: string }>;
  /** Waits for the event of a refund, or its failure. Resolves to what is known in time. */
  wait(id: string): Promise<ChannelRefund | undefined>;
  /** A channel at the head of the chain. */
  read(channelId: Hex): Promise<ChannelReading | undefined>;
}

export interface RunningRefunds extends NetworkRefunds {
  stop(): Promise<void>;
}

const page = 100;
const pollMs = 200;

/**
 * Carries on the refunds of a network that have not ended: those that were begun here, and those of
 * other processes, also of dead ones. One process with a relayer does so at a time, under a lease.
 *
 * @param options.onSent the chain has an event soon
 */
export function startChannelRefunds(
  channels: ChannelsContext,
  { onSent }: { onSent: () => void },
): RunningRefunds {
  const { context, settlement, settings, place } = channels;
  const { ledger, clock, logger, times } = context;
  const { network } = settlement;
  const memory: RefundMemory = {
    rests: new Map(),
    disputes: new Map(),
    inVain: new Map(),
    formerHeads: new Map(),
    shown: new Map(),
  };
  const lease = createWorkLease(context, `channels:refunds:${place.network}`);
  const waits = new Map<string, Promise<ChannelRefund | undefined>>();
  /** The last refund of the last page, where there may be more. */
  let last: OpenRefund | undefined;
  let isBusy = false;
  const stop = new AbortController();
  const stopping = stop.signal;

  const polling = startPollLoop(clock, async () => {
    try {
      return await look();
    } catch (err) {
      if (!stopping.aborted) {
        logger.warn({ err, network: place.network }, "refunds of channels wait; retrying");
      }
      return times.leaseMs;
    }
  });

  // A buyer may ask as often as it likes: the node is asked by one request of a channel at a time.
  const reads = createKeyedSingleFlight(async (channelId: Hex) => {
    const head = await network.watcher.read(0);
    const block = { number: Number(head.number), hash: head.hash };
    const { contract } = place;
    return (await readChannels(network, { contract, ids: [channelId], block })).get(channelId);
  });

  const unsubscribe = network.watcher.subscribe(
    (event) => {
      if ("head" in event && isBusy) polling.wake();
    },
    { pollIntervalMs: Number.POSITIVE_INFINITY },
  );

  /** Open refunds, page by page: those that wait for long hold up none behind them. */
  async function nextPage(): Promise<OpenRefund[]> {
    let open = await findOpenRefunds(ledger, { ...place, limit: page, after: last });
    if (open.length === 0 && last !== undefined) {
      open = await findOpenRefunds(ledger, { ...place, limit: page });
    }
    last = open.length < page ? undefined : open.at(-1);
    return open;
  }

  /** Returns the time until the next look. */
  async function look(): Promise<number> {
    const open = await nextPage();
    isBusy = open.length > 0;
    if (!isBusy) {
      await lease.release();
      return times.leaseMs;
    }
    const mayWork = settlement.relayers.some(isReady) && (await lease.hold());
    if (!mayWork) return times.leaseMs;
    await advanceChannelRefunds({ ...channels, stopping }, memory, open);
    onSent();
    return Math.min(Math.max(network.blocks.blockTimeMs(), network.pollMs), times.leaseMs);
  }

  async function poll(id: string): Promise<ChannelRefund | undefined> {
    const until = clock.now() + network.times.settleTimeoutMs(0);
    for (;;) {
      const refund = await readRefund(ledger, id);
      if (refund === undefined || refund.event !== undefined) return refund;
      if (refund.endedAt !== undefined || clock.now() >= until || stopping.aborted) return refund;
      await sleep(clock, pollMs);
    }
  }

  return {
    cost: settings.claimCost * refundRows,
    signs: (receiverAuthorizer) =>
      settings.signers.some(({ address }) => address === receiverAuthorizer),
    async begin({ id: ofOperator, ...refund }) {
      const id = ofOperator ?? randomUUID();
      const head = await network.watcher.read(network.pollMs);
      const limits = ofOperator === undefined ? settings.refundLimits : undefined;
      const sinceNumber = Number(head.number);
      const locked = await lockRefund(ledger, { ...refund, id, sinceNumber, limits });
      if (locked.outcome !== "locked") return locked;
      await context.faultPoint("channel_refund_locked");
      polling.wake();
      return { outcome: "locked", id };
    },
    wait(id) {
      const waiting = waits.get(id) ?? poll(id).finally(() => void waits.delete(id));
      waits.set(id, waiting);
      return waiting;
    },
    read: reads.next,
    async stop() {
      stop.abort();
      unsubscribe();
      await polling.stop();
      await lease.release();
    },
  };
}
