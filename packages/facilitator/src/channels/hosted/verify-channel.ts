import {
  type ChannelReason,
  type ChannelRefusalReason,
  type ChannelVerdict,
  type ChannelVerification,
  type HostedCaller,
  type InvalidReason,
  readChannelOffer,
} from "@coinslot/protocol";
import type { ChannelReading } from "../../ledger/channels/channel-state.ts";
import { type CheckedDeposit, checkDeposit } from "../../schemes/batch-settlement/check-deposit.ts";
import { checkVoucher } from "../../schemes/batch-settlement/check-voucher.ts";
import { isNonceUsed } from "../deposits/deposit-evidence.ts";
import type { HostedContext, HostedNetwork, Permit } from "./hosted-context.ts";
import { permit } from "./permit.ts";
import { readHead, readOne, stateOf } from "./read-channel.ts";
import { withTrial } from "./with-trial.ts";

type Payload = ChannelVerification["paymentPayload"]["payload"];
type Requirements = ChannelVerification["paymentRequirements"];
type Reason = ChannelReason | ChannelRefusalReason | InvalidReason;

/**
 * Verifies a payload of a buyer against the chain, in the order of the public specification. It
 * changes nothing, and knows no sum that was charged: the seller compares that.
 *
 * @throws FacilitatorError, RpcError, ZodError
 */
export async function verifyChannel(
  hosted: HostedContext,
  message: ChannelVerification,
  asker: HostedCaller,
): Promise<ChannelVerdict> {
  const { payload } = message.paymentPayload;
  const { channelConfig: config } = payload;
  const permitted = permit(hosted, message, { asker, moved: [config] });
  if ("reason" in permitted) return { isValid: false, ...permitted };
  const { payer } = config;
  const checked = checkPayload(hosted, permitted.network, {
    payload,
    requirements: message.paymentRequirements,
  });
  if ("reason" in checked) return { isValid: false, payer, ...checked };
  const { deposit } = checked;
  const { channelId } = payload.voucher;
  const head = await readHead(permitted.network);
  const reading = await readOne(permitted.network, channelId, head);
  const isUsed = deposit && (await isExecuted(permitted.network, payload, deposit));
  const reason =
    findFault(payload, reading, isUsed ? undefined : deposit) ??
    (deposit && !isUsed ? await tryDeposit(hosted, permitted, payload, deposit) : undefined);
  if (reason !== undefined) return { isValid: false, payer, reason };
  return { isValid: true, payer, channelState: stateOf(channelId, reading) };
}

/** The checks that need no node: config, terms, signatures and times. */
export function checkPayload(
  { recoverSigner }: HostedContext,
  { escrow: { context, place }, digests }: HostedNetwork,
  { payload, requirements }: { payload: Payload; requirements: Requirements },
): { deposit: CheckedDeposit | undefined } | { reason: Reason } {
  const offer = readChannelOffer(requirements);
  if (offer === undefined) return { reason: "invalid_payment_requirements" };
  const fault = checkVoucher(payload, { terms: offer, digests, recoverSigner });
  if (fault !== undefined) return { reason: fault };
  if (payload.type !== "deposit") return { deposit: undefined };
  const deposit = checkDeposit(payload, {
    deposit: payload.deposit,
    // The seller's minimum is its own to enforce.
    terms: { domain: offer.domain, minDeposit: 0n },
    network: place.network,
    now: context.ledger.now(),
    recoverSigner,
  });
  return typeof deposit === "string" ? { reason: deposit } : { deposit };
}

/** Whether the authorization of a deposit is used: its money is in the balance then. */
export function isExecuted(
  { escrow: { settlement, place } }: HostedNetwork,
  { channelConfig: { token, payer } }: Payload,
  { nonce }: CheckedDeposit,
): Promise<boolean | undefined> {
  return isNonceUsed(settlement.network.rpc, { network: place.network, token, payer, nonce });
}

/**
 * Compares a voucher with its channel. Money that its payer withdraws covers none: a seller may
 * learn of a withdrawal from here alone.
 */
export function findFault(
  { type, voucher: { maxClaimableAmount: ceiling } }: Payload,
  { balance, totalClaimed, withdrawal }: ChannelReading,
  deposit: CheckedDeposit | undefined,
): ChannelRefusalReason | undefined {
  if (balance === 0n && deposit === undefined) {
    return "invalid_batch_settlement_evm_channel_not_found";
  }
  const secure = balance - (withdrawal?.amount ?? 0n) + (deposit?.amount ?? 0n);
  // A refund's voucher covers what was charged, and claims nothing more.
  const covered = type === "refund" ? balance : secure;
  if (ceiling > covered) return "invalid_batch_settlement_evm_cumulative_exceeds_balance";
  const isBelow = type === "refund" ? ceiling < totalClaimed : ceiling <= totalClaimed;
  return isBelow ? "invalid_batch_settlement_evm_cumulative_below_claimed" : undefined;
}

async function tryDeposit(
  { trials }: HostedContext,
  { caller, network }: Permit,
  { channelConfig }: Payload,
  deposit: CheckedDeposit,
): Promise<ChannelRefusalReason | undefined> {
  return withTrial({ trials, caller, payer: channelConfig.payer }, async () => {
    const refused = await network.deposits.test(channelConfig, deposit);
    if (refused?.outcome === "refused") return { isVain: true, result: refused.reason };
    // Used a moment ago: the next look finds it.
    return { isVain: refused !== undefined, result: undefined };
  });
}
