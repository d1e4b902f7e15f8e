import {
  type ChannelCharge,
  type ChannelCorrection,
  type ChannelRepeat,
  type ChannelRequest,
  type ChannelRun,
  type ChannelState,
  toLowerHex,
} from "@coinslot/protocol";
import type { Channel, LastCharge } from "../../ledger/channels/channel.ts";
import { evictChannelAnswers } from "../../ledger/channels/channel-answers.ts";
import { chargeChannel } from "../../ledger/channels/charge-channel.ts";
import { lowerCharge } from "../../ledger/channels/end-charge.ts";
import { readChannel } from "../../ledger/channels/open-channel.ts";
import { releaseRun } from "../../ledger/channels/reserve-run.ts";
import { countRun, giveUpCharge } from "../../ledger/channels/resume-charge.ts";
import { baseOf } from "../../schemes/batch-settlement/admit-voucher.ts";
import type { ChargedSale } from "../../settle/channel-metrics.ts";
import type { SalesContext, ServedChannel } from "./sales-context.ts";

/** The channel as its buyer sees it. `charged`: the base of the next request. */
export function channelStateOf(
  { key, state }: Pick<ServedChannel, "key" | "state">,
  charged: bigint,
): ChannelState {
  const { balance, totalClaimed, withdrawal, refundNonce } = state;
  return {
    channelId: key.channelId,
    balance,
    totalClaimed,
    withdrawRequestedAt: withdrawal?.initiatedAt ?? 0,
    refundNonce,
    chargedCumulativeAmount: charged,
  };
}

/** The state that this ledger can prove, for a buyer that is out of step. */
export function correctionOf(
  served: Pick<ServedChannel, "key" | "state">,
  channel: Pick<Channel, "charged" | "voucher">,
): ChannelCorrection {
  const { voucher } = channel;
  const base = baseOf(channel.charged, served.state.totalClaimed);
  return {
    state: "corrected",
    channelState: channelStateOf(served, base),
    // One that covers less proves nothing: the chain has paid more, and proves it by itself.
    voucherState:
      voucher === undefined || voucher.ceiling < base
        ? undefined
        : { signedMaxClaimable: voucher.ceiling, signature: voucher.signature },
  };
}

/**
 * The run of an admitted request. Its channel is left when it has ended, on every way out.
 *
 * @param admitted.before the voucher that covers what was charged until now
 * @param admitted.token of the reserved run, where one is
 * @param admitted.isKept the next request of the channel takes the token over
 */
export function createChannelRun(
  context: SalesContext,
  served: ServedChannel,
  {
    request,
    seen,
    base,
    before,
    token,
    isKept,
  }: {
    request: ChannelRequest;
    seen: bigint;
    base: bigint;
    before: Channel["voucher"];
    token: string | undefined;
    isKept: boolean;
  },
): ChannelRun {
  const { ledger, marks, leases, freeRuns } = context;
  const { key, signer, leave } = served;
  const { voucher } = request.presented;

  return {
    async charge({ amount, sealedAnswer }) {
      const id = context.createId();
      let isCharged = false;
      try {
        isCharged = await chargeChannel(ledger, {
          id,
          seen,
          base,
          amount,
          ceiling: voucher.maxClaimableAmount,
          signature: voucher.signature,
          fingerprint: request.fingerprint,
          route: request.route,
          keyHash: request.keyHash,
          answer: await makeRoom(context, served, sealedAnswer),
          token,
          isTokenKept: isKept,
          ...key,
        });
        if (isCharged) {
          if (isKept && token !== undefined) leases.keep(key, token);
          marks.drop(key.channelId);
          if (amount > 0n) {
            freeRuns.paid(signer);
            context.metrics.charged(saleOf(request), amount);
          }
          await context.faultPoint("channel_charged");
          return chargeOf(context, served, { id, base, amount, before, request });
        }
        const now = await readChannel(ledger, key);
        return correctionOf(served, now ?? { charged: base, voucher: undefined });
      } finally {
        if (!isCharged) await end();
      }
    },
    async drop({ isFree }) {
      if (isFree) freeRuns.count(signer);
      await end();
    },
  };

  /** A token that stays with a living process would close the channel: it is written again. */
  async function end(): Promise<void> {
    try {
      if (token === undefined) return;
      await ledger.pendingEnds.write(token, () => releaseRun(ledger, { token, ...key }));
    } finally {
      leave();
    }
  }
}

function saleOf({ network, route = "", presented }: ChannelRequest): ChargedSale {
  return { network, route, asset: toLowerHex(presented.channelConfig.token) };
}

/** A charge that was committed by this process. */
function chargeOf(
  context: SalesContext,
  served: ServedChannel,
  {
    id,
    base,
    amount,
    before,
    request,
  }: {
    id: string;
    base: bigint;
    amount: bigint;
    before: Channel["voucher"];
    request: ChannelRequest;
  },
): ChannelCharge {
  const { ledger, freeRuns } = context;
  const { key, signer, leave } = served;
  return {
    state: "charged",
    amount,
    channelState: channelStateOf(served, base + amount),
    async lower(to, { isFree = false } = {}) {
      try {
        if (isFree) freeRuns.count(signer);
        const { route } = request;
        const isLowered = await lowerCharge(ledger, {
          id,
          base,
          amount: to,
          before,
          route,
          ...key,
        });
        if (isLowered) context.metrics.lowered(saleOf(request), amount - to);
        if (isLowered && to === 0n) freeRuns.unpaid(signer);
        await context.faultPoint("channel_lowered");
        return isLowered;
      } finally {
        if (to === 0n) leave();
      }
    },
    ...endsOf(context, served, id),
  };
}

/** The last charge of a channel, taken over: its answer goes out again. */
export function createChannelRepeat(
  context: SalesContext,
  served: ServedChannel,
  {
    channel,
    last,
    sealedAnswer,
  }: {
    channel: Channel;
    last: LastCharge;
    sealedAnswer: Uint8Array | undefined;
  },
): ChannelRepeat {
  const { id, amount } = last;
  const correction = correctionOf(served, channel);
  return {
    amount,
    channelState: correction.channelState,
    sealedAnswer,
    correction,
    beginRun: () => countRun(context.ledger, { id, ...served.key }),
    ...endsOf(context, served, id),
  };
}

function endsOf(
  { ledger, marks }: SalesContext,
  { key, leave }: ServedChannel,
  id: string,
): Pick<ChannelCharge, "deliver" | "giveUp"> {
  return {
    deliver() {
      marks.add(key, id);
      leave();
    },
    async giveUp() {
      try {
        // Delivered before: the mark that is not written yet asks for the owner.
        if (!marks.has(key.channelId, id)) await giveUpCharge(ledger, { id, ...key });
      } finally {
        leave();
      }
    },
  };
}

/** The room for a kept answer, taken from the signer's own older ones. */
async function makeRoom(
  { ledger }: SalesContext,
  { key, signer, quotas }: ServedChannel,
  sealed: Uint8Array | undefined,
): Promise<{ sealed: Uint8Array; expiresAt: number } | undefined> {
  if (sealed === undefined) return undefined;
  const expiresAt = ledger.now() + ledger.keepAnswersMs;
  // By the channel's id: a channel keeps one answer.
  const room = quotas.makeRoom(signer, { keyHash: key.channelId, sealed }, expiresAt);
  const channelIds = room.evicted.map(({ keyHash }) => keyHash);
  await evictChannelAnswers(ledger, { channelIds, ...key });
  return room.isKept ? { sealed, expiresAt } : undefined;
}
