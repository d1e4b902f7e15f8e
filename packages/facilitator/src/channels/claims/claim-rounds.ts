import { FacilitatorError } from "@coinslot/protocol";
import { forgetClaims } from "../../ledger/channels/channel-claims.ts";
import { findMoving } from "../../ledger/channels/channel-state.ts";
import { forgetDeposits } from "../../ledger/channels/move-deposit.ts";
import { sumLocked } from "../../ledger/channels/sum-channels.ts";
import { createWorkLease } from "../../ledger/work-lease.ts";
import { isReady } from "../../settle/relay/relayer-context.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { type AskedClaim, createAskedClaims } from "./asked-claims.ts";
import { areChannelsActive } from "./channel-activity.ts";
import { createClaimMemory } from "./claim-memory.ts";
import { followPayouts, startPayouts } from "./follow-payouts.ts";
import { forgetClaimGauges } from "./measure-claims.ts";
import { type ClaimPlan, planClaims } from "./plan-claims.ts";
import { settleReceivers } from "./settle-receivers.ts";

/** Claims and settles of one network in one process, round by round. */
export interface ClaimRounds {
  /**
   * Answers the claims that were asked for. Then claims and settles what is due, where this process
   * holds the lease.
   *
   * @returns whether money is at risk or on its way, a channel moves, or charges come
   * @throws RpcError, DatabaseError
   */
  round(): Promise<boolean>;
  /** True while this process holds the lease of claims. */
  isClaiming(): boolean;
  ask(asked: AskedClaim): Promise<ClaimPlan>;
  /** Rejects the claims that were asked for and got no round. */
  fail(reason: unknown): void;
  /** Gives the lease back. */
  stop(): Promise<void>;
}

const settleEveryMs = 60_000;
/** It reads all channels. */
const measureEveryMs = 300_000;
/** It reads all claims. */
const forgetEveryMs = 3_600_000;
const noPlan = { dues: 0, sent: [], refused: [], isActive: false };
const keptEndedMs = 30 * 86_400_000;

/** @param wake begins a round */
export function createClaimRounds(channels: ChannelsContext, wake: () => void): ClaimRounds {
  const { context, settlement, place } = channels;
  const { clock, ledger, logger } = context;
  const memory = createClaimMemory(channels, wake);
  const lease = createWorkLease(context, `channels:claims:${place.network}`);
  const asked = createAskedClaims(wake);
  let settledAt = Number.NEGATIVE_INFINITY;
  let followedAt = Number.NEGATIVE_INFINITY;
  let measuredAt = Number.NEGATIVE_INFINITY;
  let forgotAt = clock.now();
  let isClaiming = false;
  const stopping = new AbortController();
  let following: Promise<void> | undefined;
  let settling: Promise<void> | undefined;
  let hasPayouts = false;

  /** Payouts are for the books. No claim waits for a node or a ledger that fails them. */
  function reportPayouts(err: unknown): void {
    if (stopping.signal.aborted) return;
    logger.warn({ err, network: place.network }, "payouts could not be posted; retrying");
  }

  /** Before the first claim of this process: the ledger may be new. */
  async function begin(): Promise<void> {
    if (hasPayouts) return;
    try {
      await startPayouts(channels);
      hasPayouts = true;
    } catch (err) {
      reportPayouts(err);
    }
  }

  /** Beside the rounds: an endpoint may be slow. */
  function follow(): void {
    if (clock.now() - followedAt < settleEveryMs) return;
    followedAt = clock.now();
    following ??= followPayouts(channels, memory, stopping.signal)
      .catch(reportPayouts)
      .finally(() => {
        following = undefined;
      });
  }

  /** Beside the rounds, too: it asks nodes for each receiver in turn. */
  function settle(): void {
    if (clock.now() - settledAt < settleEveryMs) return;
    settledAt = clock.now();
    settling ??= settleReceivers(channels, memory, stopping.signal)
      .catch((err: unknown) => {
        if (stopping.signal.aborted) return;
        logger.warn({ err, network: place.network }, "claimed money could not be sent; retrying");
      })
      .finally(() => {
        settling = undefined;
      });
  }

  return {
    async round() {
      const hasRelayer = settlement.relayers.some(isReady);
      if (hasRelayer) await begin();
      await asked.answer(({ only }) =>
        hasRelayer
          ? planClaims(channels, memory, { isAll: true, only })
          : Promise.resolve({ ...noPlan, waiting: "no_relayer" }),
      );
      isClaiming = hasRelayer && (await lease.hold());
      if (!isClaiming) {
        await lease.release();
        memory.payoutsBehindSince = undefined;
        memory.payoutsLostAt = undefined;
        forgetClaimGauges(channels);
        return areChannelsActive(channels);
      }
      follow();
      const { isActive } = await planClaims(channels, memory);
      settle();
      if (clock.now() - measuredAt >= measureEveryMs) {
        measuredAt = clock.now();
        const locked = await sumLocked(ledger, place);
        channels.metrics.locked.set({ network: place.network }, Number(locked));
      }
      if (clock.now() - forgotAt >= forgetEveryMs) {
        forgotAt = clock.now();
        const ended = { ...place, before: ledger.now() - keptEndedMs };
        await forgetClaims(ledger, ended);
        await forgetDeposits(ledger, ended);
      }
      return isActive || (await findMoving(ledger, place)).length > 0;
    },
    isClaiming: () => isClaiming,
    ask: asked.ask,
    fail: asked.fail,
    async stop() {
      stopping.abort();
      asked.end(new FacilitatorError("The process stops", { kind: "unavailable" }));
      await Promise.all([following, settling]);
      await lease.release();
    },
  };
}
