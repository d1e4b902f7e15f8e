import {
  type ChannelDepositOutcome,
  type ChannelDepositRequest,
  type ChannelRefusalReason,
  depositNonce,
} from "@coinslot/protocol";
import type { Channel } from "../../ledger/channels/channel.ts";
import { type DepositKey, readDeposit } from "../../ledger/channels/channel-deposits.ts";
import { admitVoucher, baseOf } from "../../schemes/batch-settlement/admit-voucher.ts";
import { type CheckedDeposit, checkDeposit } from "../../schemes/batch-settlement/check-deposit.ts";
import { codeLimited } from "../../settle/unavailable-errors.ts";
import { correctionOf } from "../sales/channel-run.ts";
import type { ChannelNetwork, SalesContext } from "../sales/sales-context.ts";
import { correct, isShown, maxUnclaimedFor, observe, withMark } from "../sales/serve-voucher.ts";
import type { ObservedChannel } from "../watch/observed-channel.ts";
import {
  awaitMoney,
  awaitOthers,
  followToEnd,
  retryAfterSeconds,
  type Waiting,
} from "./await-deposit.ts";
import type { QueuedDeposit } from "./channel-deposits.ts";

const exceedsBalance = refuse("invalid_batch_settlement_evm_cumulative_exceeds_balance");

/**
 * Serves the deposit of a request whose voucher was checked, in the order of the README of
 * `schemes/batch-settlement`. The same payload finds its own deposit again, in any process.
 *
 * @throws FacilitatorError where a payer with code must wait; StoppedError, RpcError, DatabaseError
 */
export async function serveDeposit(
  context: SalesContext,
  network: ChannelNetwork,
  request: ChannelDepositRequest,
): Promise<ChannelDepositOutcome> {
  const { deposits } = network;
  if (deposits === undefined) return refuse("invalid_batch_settlement_evm_payload_type");
  const { presented, deposit } = request;
  const { channelConfig: config, voucher } = presented;
  const signed = deposit.authorization.erc3009Authorization;
  if (signed === undefined) {
    return refuse("invalid_batch_settlement_evm_erc3009_authorization_required");
  }
  const { ledger, recoverSigner } = context;
  const key: DepositKey = {
    network: network.network,
    token: config.token,
    payer: config.payer,
    nonce: depositNonce({ channelId: voucher.channelId, salt: signed.salt }),
  };
  const until = deposits.now() + Math.min(request.timeoutMs, deposits.timeoutMs(deposit.amount));
  const follow = () => followToEnd(context, network, { deposits, key, request, until });
  // Before its checks: its time may be over, and it may have been executed long ago.
  const known = await readDeposit(ledger, key);
  if (known !== undefined && known.state !== "failed") return follow();
  const checked = checkDeposit(presented, {
    deposit,
    terms: { ...request, minDeposit: larger(request.minDeposit, deposits.minDeposit) },
    network: network.network,
    now: ledger.now(),
    recoverSigner,
  });
  if (typeof checked === "string") return refuse(checked);
  if (!(await awaitOthers(context, network, { deposits, request, until }))) {
    return { state: "busy", retryAfterSeconds };
  }
  const decided = await decide(context, network, request);
  if (decided !== undefined) return decided;
  const queued = await tryDeposit(context, { deposits, request, checked });
  switch (queued.outcome) {
    case "queued":
      if (request.limitKey !== undefined) context.looks.giveBack(request.limitKey);
      return follow();
    case "known":
      return follow();
    case "used":
      return awaitMoney(context, network, { deposits, request, until });
    case "busy":
      return { state: "busy", retryAfterSeconds };
    case "caller_limited":
      return { state: "busy", retryAfterSeconds: Math.ceil(queued.limitedMs / 1_000) };
    case "limited":
      return { state: "payer_limited", retryAfterSeconds: Math.ceil(queued.retryAfterMs / 1_000) };
    case "burnt_gas":
      return { state: "payer_limited", retryAfterSeconds: Math.ceil(queued.forMs / 1_000) };
    case "code_limited":
      throw codeLimited(queued);
    case "refused":
      return refuse(queued.reason);
  }
}

function larger(first: bigint, second: bigint): bigint {
  if (first > second) return first;
  return second;
}

function refuse(reason: ChannelRefusalReason) {
  return { state: "refused", reason } as const;
}

/** Tries and queues it, within the caller's limit: a forged one costs some questions to a node. */
async function tryDeposit(
  { looks }: SalesContext,
  {
    deposits,
    request,
    checked,
  }: Pick<Waiting, "deposits" | "request"> & { checked: CheckedDeposit },
): Promise<QueuedDeposit> {
  const { presented, limitKey } = request;
  if (limitKey === undefined) return deposits.queue(presented, checked);
  const look = await looks.begin(limitKey);
  if ("limitedMs" in look) return { outcome: "caller_limited", ...look };
  let isVain = false;
  try {
    const queued = await deposits.queue(presented, checked);
    // Nodes were asked for it: code of a payer's accepts as many as its caller likes.
    isVain = !["queued", "known"].includes(queued.outcome);
    return queued;
  } finally {
    look.end({ isAbsent: isVain });
  }
}

/**
 * Decides by the channel as it is, before money moves: a deposit whose voucher would buy nothing
 * afterwards is not executed.
 *
 * @returns `undefined` where the deposit is to be executed
 */
async function decide(
  context: SalesContext,
  network: ChannelNetwork,
  request: ChannelDepositRequest,
): Promise<ChannelDepositOutcome | undefined> {
  const { presented, price, deposit } = request;
  const { voucher, channelConfig } = presented;
  const stopped = context.stops.refusalOf(request.network, request.route);
  if (stopped !== undefined) throw stopped;
  const limitedMs = context.freeRuns.limitOf(channelConfig.payerAuthorizer);
  if (limitedMs !== undefined) {
    return { state: "payer_limited", retryAfterSeconds: Math.ceil(limitedMs / 1_000) };
  }
  const seen = await observe(context, network, request);
  switch (seen.kind) {
    case "limited":
      return { state: "busy", retryAfterSeconds: Math.ceil(seen.limitedMs / 1_000) };
    case "stale":
      return { state: "busy", retryAfterSeconds: seen.retryAfterSeconds };
    case "absent":
      if (voucher.maxClaimableAmount !== price) return emptyCorrection(request);
      if (deposit.amount < price) return exceedsBalance;
      return (await owes(network, presented)) ? exceedsBalance : undefined;
    case "observed":
      return decideBy(context, network, request, seen);
  }
}

async function decideBy(
  context: SalesContext,
  place: ChannelNetwork,
  request: ChannelDepositRequest,
  seen: ObservedChannel,
): Promise<ChannelDepositOutcome | undefined> {
  const { quotas, network, contract } = place;
  const { presented, price, fingerprint, keyHash, deposit } = request;
  const { channelId } = presented.voucher;
  const channel = withMark(context, seen.channel);
  const { payerAuthorizer: signer } = presented.channelConfig;
  const key = { network, contract, channelId };
  const served = { key, signer, quotas, state: seen.state, leave: () => undefined };
  const after = withDeposit(channel, deposit.amount);
  const decided = admitVoucher(
    { voucher: presented.voucher, price, fingerprint, keyHash },
    {
      channel: after,
      totalClaimed: seen.state.totalClaimed,
      maxUnclaimed: maxUnclaimedFor(seen, price),
    },
  );
  switch (decided.kind) {
    case "repeat":
      return { state: "needless" };
    case "purchase":
      if (!seen.isSelling) return exceedsBalance;
      // One that pays for what was lost on its own channel is taken, whatever is owed elsewhere.
      if (channel.lost === 0n && (await owes(place, presented))) return exceedsBalance;
      if (presented.voucher.maxClaimableAmount <= channel.secure) return { state: "needless" };
      // After the deposit it would be corrected: a claim has shown it to all.
      if (await isShown(context, served, presented)) {
        return correct(context, served, { presented, channel });
      }
      return undefined;
    case "correct": {
      const { charged, voucher } = channel;
      const buys =
        voucher !== undefined && voucher.ceiling > baseOf(charged, seen.state.totalClaimed);
      // The proof could buy: the way of vouchers knows whether a claim has shown this one.
      if (buys) return { state: "needless" };
      return correctionOf(served, channel);
    }
    case "exceeds_balance":
    case "owing":
      return exceedsBalance;
    case "unavailable":
      return { state: "busy", retryAfterSeconds };
  }
}

/** Whether the signer owes on another channel. */
function owes(
  { owing }: ChannelNetwork,
  { channelConfig, voucher }: ChannelDepositRequest["presented"],
): Promise<boolean> {
  return owing.owes(channelConfig.payerAuthorizer, voucher.channelId);
}

/**
 * The channel after a deposit. It pays for lost money first. With a withdrawal or a
 * reorganisation, the balance may be more than what is secure.
 */
function withDeposit(channel: Channel, amount: bigint): Channel {
  const { lost, secure } = channel;
  return { ...channel, lost: lost > amount ? lost - amount : 0n, secure: secure + amount };
}

/** A channel without money has charged nothing. */
function emptyCorrection({ presented }: ChannelDepositRequest): ChannelDepositOutcome {
  const { channelId } = presented.voucher;
  return {
    state: "corrected",
    channelState: {
      channelId,
      balance: 0n,
      totalClaimed: 0n,
      withdrawRequestedAt: 0,
      refundNonce: 0n,
      chargedCumulativeAmount: 0n,
    },
  };
}
