import {
  type ChannelDepositOutcome,
  type ChannelDepositRequest,
  channelRefusalReasons,
} from "@coinslot/protocol";
import {
  type DepositKey,
  isDepositPending,
  readDeposit,
} from "../../ledger/channels/channel-deposits.ts";
import { baseOf } from "../../schemes/batch-settlement/admit-voucher.ts";
import { channelStateOf } from "../sales/channel-run.ts";
import type { ChannelNetwork, SalesContext } from "../sales/sales-context.ts";
import type { ObservedChannel } from "../watch/observed-channel.ts";
import type { ChannelDeposits } from "./channel-deposits.ts";

/** A deposit takes some blocks. */
export const retryAfterSeconds = 5;

/** A request that waits for the chain. */
export interface Waiting {
  deposits: ChannelDeposits;
  request: ChannelDepositRequest;
  /** By the monotonic clock. */
  until: number;
}

/**
 * Waits for other deposits of the channel. The released client signs one for each of its requests
 * at once: after the first one, the others have their money already.
 *
 * @returns false where that took too long, or the buyer has left
 */
export async function awaitOthers(
  { ledger, pause }: SalesContext,
  { network, contract }: ChannelNetwork,
  { deposits, request, until }: Waiting,
): Promise<boolean> {
  const { channelId } = request.presented.voucher;
  while (await isDepositPending(ledger, { network, contract, channelId })) {
    if (request.isGone() || deposits.now() >= until) return false;
    await pause(deposits.pollMs());
  }
  return true;
}

/** Waits until the deposit has failed, or its channel can buy by it. */
export async function followToEnd(
  context: SalesContext,
  network: ChannelNetwork,
  { key, ...waiting }: Waiting & { key: DepositKey },
): Promise<ChannelDepositOutcome> {
  const { deposits, request, until } = waiting;
  for (;;) {
    if (request.isGone()) return { state: "gone" };
    const row = await readDeposit(context.ledger, key);
    if (row === undefined) return { state: "busy", retryAfterSeconds };
    if (row.state === "failed") {
      const reason = channelRefusalReasons.find((each) => each === row.reason);
      return {
        state: "refused",
        reason: reason ?? "invalid_batch_settlement_evm_deposit_transaction_failed",
      };
    }
    if (row.state === "done" && row.hash !== undefined) {
      const seen = await seeCovered(network, waiting, { isFinal: row.endedAt !== undefined });
      if (seen !== undefined) {
        const { charged } = seen.channel;
        const base = baseOf(charged, seen.state.totalClaimed);
        const { channelId } = row;
        const channelState = channelStateOf(
          { key: { ...row, channelId }, state: seen.state },
          base,
        );
        return { state: "deposited", transaction: row.hash, amount: row.amount, channelState };
      }
    }
    if (deposits.now() >= until) {
      return { state: "pending", transaction: row.hash, retryAfterSeconds };
    }
    await context.pause(deposits.pollMs());
  }
}

/** Waits for the money of an authorization that was executed before this ledger knew of it. */
export async function awaitMoney(
  context: SalesContext,
  network: ChannelNetwork,
  waiting: Waiting,
): Promise<ChannelDepositOutcome> {
  const { deposits, request, until } = waiting;
  for (;;) {
    if (request.isGone()) return { state: "gone" };
    if ((await seeCovered(network, waiting, { isFinal: false })) !== undefined) {
      return { state: "needless" };
    }
    // It may be there, and not deep enough: another deposit would be one too many.
    if (deposits.now() >= until) {
      return { state: "pending", transaction: undefined, retryAfterSeconds };
    }
    await context.pause(deposits.pollMs());
  }
}

/**
 * The channel, once its mirror covers the voucher: it raises `secure` by a state `serveAfter` deep.
 *
 * @param options.isFinal nothing more is to be waited for
 */
async function seeCovered(
  { observer }: ChannelNetwork,
  { deposits, request: { presented } }: Waiting,
  { isFinal }: { isFinal: boolean },
): Promise<ObservedChannel | undefined> {
  const { channelId, maxClaimableAmount: ceiling } = presented.voucher;
  const seen = await observer.observe(channelId, presented.channelConfig);
  if (seen.kind !== "observed") return undefined;
  if (isFinal || seen.channel.secure >= ceiling) return seen;
  await deposits.refresh(channelId);
  const again = await observer.observe(channelId, presented.channelConfig);
  return again.kind === "observed" && again.channel.secure >= ceiling ? again : undefined;
}
