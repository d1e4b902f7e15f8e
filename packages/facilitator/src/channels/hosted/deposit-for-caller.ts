import {
  CallerGoneError,
  type ChannelCallAnswer,
  type ChannelSettlement,
  channelRefusalReasons,
  depositNonce,
  type Hex,
} from "@coinslot/protocol";
import { type DepositKey, readDeposit } from "../../ledger/channels/channel-deposits.ts";
import type { CheckedDeposit } from "../../schemes/batch-settlement/check-deposit.ts";
import { codeLimited } from "../../settle/unavailable-errors.ts";
import type { QueuedDeposit } from "../deposits/channel-deposits.ts";
import { findExecution } from "../deposits/deposit-evidence.ts";
import { depositGas } from "../deposits/deposit-gas.ts";
import type { HostedContext, Permit } from "./hosted-context.ts";
import { readHead, readOne, readServed, stateOf } from "./read-channel.ts";
import { outOfGas, requireGas, unavailable } from "./send-call.ts";
import { checkPayload, findFault, isExecuted } from "./verify-channel.ts";
import { withTrial } from "./with-trial.ts";

export type Deposit = Extract<ChannelSettlement["paymentPayload"]["payload"], { type: "deposit" }>;
type Refused = Extract<ChannelCallAnswer, { state: "refused" }>;

const inVain = "invalid_batch_settlement_evm_deposit_transaction_failed";

/**
 * Executes a buyer's deposit into a caller's channel, once, and waits until it is deep enough. Its
 * row, its transaction and its repetition are those of a seller's own deposits.
 *
 * @throws FacilitatorError, CallerLimitedError, StoppedError, RpcError, ZodError, DatabaseError
 */
export async function depositForCaller(
  hosted: HostedContext,
  permitted: Permit,
  {
    payload,
    requirements,
  }: { payload: Deposit; requirements: ChannelSettlement["paymentRequirements"] },
): Promise<ChannelCallAnswer> {
  const { network } = permitted;
  const { channelConfig: config, voucher } = payload;
  const { payer, token } = config;
  const refuse = (reason: Refused["reason"]): Refused => ({ state: "refused", reason, payer });
  const signed = payload.deposit.authorization.erc3009Authorization;
  if (signed === undefined) {
    return refuse("invalid_batch_settlement_evm_erc3009_authorization_required");
  }
  const { channelId } = voucher;
  if (network.digests.channelIdOf(config) !== channelId) {
    return refuse("invalid_batch_settlement_evm_channel_id_mismatch");
  }
  const { context, place } = network.escrow;
  const nonce = depositNonce({ channelId, salt: signed.salt });
  const key = { network: place.network, token, payer, nonce };
  // Before its checks: its time may be over, and it may have been executed long ago.
  const known = await readDeposit(context.ledger, key);
  if (known !== undefined && known.state !== "failed") {
    // One nonce of two amounts: the other one is executed.
    if (known.amount !== payload.deposit.amount) return refuse(inVain);
    return follow(hosted, permitted, { key, payload });
  }
  const checked = checkPayload(hosted, network, { payload, requirements });
  if ("reason" in checked) return refuse(checked.reason);
  const { deposit } = checked;
  if (deposit === undefined) return refuse("invalid_batch_settlement_evm_payload_type");
  const reading = await readOne(network, channelId, await readHead(network));
  if (await isExecuted(network, payload, deposit)) {
    return findForeign(hosted, permitted, { key, payload });
  }
  const fault = findFault(payload, reading, deposit);
  if (fault !== undefined) return refuse(fault);
  const stopped = hosted.stops.refusalOf(place.network, undefined);
  if (stopped !== undefined) throw stopped;
  const queued = await queue(hosted, permitted, { payload, deposit });
  switch (queued.outcome) {
    case "queued":
    case "known":
      return follow(hosted, permitted, { key, payload });
    case "used":
      return findForeign(hosted, permitted, { key, payload });
    case "busy":
      throw unavailable("another deposit of the channel or its payer is under way");
    case "limited":
      throw unavailable("too many deposits of this signer or payer");
    case "burnt_gas":
      throw unavailable("code of the payer has burnt gas");
    case "code_limited":
      throw codeLimited(queued);
    case "caller_limited":
      throw outOfGas(queued.limitedMs);
    case "refused":
      return refuse(queued.reason);
  }
}

/**
 * Queues it within its caller's gas: the commit that queues it takes that, after its trial. Trials
 * in vain would hold the gas of other buyers.
 */
async function queue(
  hosted: HostedContext,
  permitted: Permit,
  { payload, deposit }: { payload: Deposit; deposit: CheckedDeposit },
): Promise<QueuedDeposit> {
  const { caller, network } = permitted;
  const { place, metrics } = network.escrow;
  const { payer } = payload.channelConfig;
  await requireGas(hosted, permitted, { data: deposit.data, gas: depositGas, isByBuyer: true });
  const queued = await withTrial({ ...hosted, caller, payer }, async () => {
    const result = await network.deposits.queue(payload, deposit, caller);
    return { isVain: !["queued", "known", "busy"].includes(result.outcome), result };
  });
  const outcome = queued.outcome === "queued" ? "sent" : "refused";
  metrics.callerCalls.inc({ network: place.network, kind: "deposit", outcome });
  return queued;
}

/** Waits for its row, which any process with a relayer moves. */
async function follow(
  hosted: HostedContext,
  permitted: Permit,
  { key, payload }: { key: DepositKey; payload: Deposit },
): Promise<ChannelCallAnswer> {
  const { network, isGone, begunAt } = permitted;
  const { context, settlement } = network.escrow;
  const { times, serveAfter } = settlement.network;
  const { payer } = payload.channelConfig;
  const { amount: value } = payload.deposit;
  const until = begunAt + times.settleTimeoutMs(serveAfter({ value }));
  for (;;) {
    const row = await readDeposit(context.ledger, key);
    if (row?.state === "done" && row.hash !== undefined) {
      return answerDone(permitted, payload, { transaction: row.hash, amount: row.amount });
    }
    if (row?.state === "failed") {
      const reason = channelRefusalReasons.find((each) => each === row.reason) ?? inVain;
      return { state: "refused", reason, payer, transaction: row.hash };
    }
    if (context.clock.now() >= until) return { state: "pending", transaction: row?.hash, payer };
    if (isGone()) throw new CallerGoneError();
    await hosted.pause(network.deposits.pollMs());
  }
}

async function answerDone(
  { network }: Permit,
  { channelConfig: { payer }, voucher: { channelId } }: Deposit,
  { transaction, amount }: { transaction: Hex; amount: bigint },
): Promise<ChannelCallAnswer> {
  const reading = await readOne(network, channelId, await readHead(network));
  return { state: "done", transaction, payer, amount, channelState: stateOf(channelId, reading) };
}

/**
 * The answer for an authorization that was used before this ledger knew of it: by another sender,
 * into the same channel, or to cancel it.
 */
async function findForeign(
  hosted: HostedContext,
  permitted: Permit,
  { key, payload }: { key: DepositKey; payload: Deposit },
): Promise<ChannelCallAnswer> {
  const { caller } = permitted;
  const { payer } = key;
  return withTrial({ ...hosted, caller, payer }, async () => {
    const result = await readForeign(permitted, { key, payload });
    return { isVain: result.state !== "done", result };
  });
}

async function readForeign(
  permitted: Permit,
  { key, payload }: { key: DepositKey; payload: Deposit },
): Promise<ChannelCallAnswer> {
  const { network } = permitted;
  const { settlement, place } = network.escrow;
  const { channelConfig, voucher, deposit } = payload;
  const { payer } = channelConfig;
  const served = await readServed(network, deposit.amount);
  if (served === undefined) return { state: "pending", transaction: undefined, payer };
  const facts = { ...key, ...place, channelId: voucher.channelId, amount: deposit.amount };
  const from = Math.max(0, served.number - settlement.network.finalAfter - foreignBlocks);
  const found = await findExecution(settlement.network.rpc, facts, { from, to: served.number });
  // Not deep enough, or before the time in which its payload is of use.
  if (found === undefined) return { state: "pending", transaction: undefined, payer };
  if (found.kind === "elsewhere") return { state: "refused", reason: inVain, payer };
  return answerDone(permitted, payload, { transaction: found.hash, amount: deposit.amount });
}

/** A payload is valid for minutes: its execution is not far from the head. */
const foreignBlocks = 1_000;
