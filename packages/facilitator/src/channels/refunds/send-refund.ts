import { isRevert, RpcResponseError } from "@coinslot/chain";
import {
  channelRefundTypedData,
  channelSettlementAbi,
  claimBatchTypedData,
  type Hex,
} from "@coinslot/protocol";
import { encodeFunctionData, hashTypedData } from "viem";
import type { ChannelKey } from "../../ledger/channels/channel.ts";
import { type ChannelClaim, insertClaims } from "../../ledger/channels/channel-claims.ts";
import { recordRefundSent } from "../../ledger/channels/move-refund.ts";
import { callByRelayer } from "../../settle/call-by-relayer.ts";
import type { CallOutcome } from "../../settle/plan/send-calls.ts";
import { gasLimitOf } from "../../settle/relay/gas.ts";
import type { ClaimSigner } from "../channel-settings.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { nameOf, rowOf } from "../claims/try-claims.ts";
import type { RefundPlan } from "./plan-refund.ts";
import type { RefundCase } from "./refund-round.ts";

const abi = channelSettlementAbi;
/** 88,350 measured of a plain token, with its calldata; one behind a proxy takes more. */
export const refundGas = 150_000n;
/** A claim of one row beside it, perhaps the receiver's first. */
const claimGas = 95_000n;

/** A row of the claim that goes before the refund. */
type Claim = Parameters<typeof rowOf>[0];

/**
 * Tries the claim and the refund in one `eth_call`, as their authorizer would send them: that needs
 * no signature. So no node sees one before it is on the disk, and a false refusal gives none away.
 *
 * @returns the escrow's error; `undefined` where it takes both
 * @throws RpcError where no node returns the result
 */
export async function tryRefund(
  { settlement: { network }, place: { contract } }: ChannelsContext,
  found: RefundCase,
  { amount }: Pick<RefundPlan, "amount">,
): Promise<string | undefined> {
  const { config, atHead } = found;
  const claim = claimOf(found);
  const calls = [
    ...(claim === undefined
      ? []
      : [encodeFunctionData({ abi, functionName: "claim", args: [[rowOf(claim)]] })]),
    encodeFunctionData({ abi, functionName: "refund", args: [config, amount] }),
  ];
  const call = { from: config.receiverAuthorizer, to: contract, data: encodeCalls(calls) };
  try {
    const minBlock = BigInt(atHead.block.number);
    await network.rpc.request({ method: "eth_call", params: [call, "latest"] }, { minBlock });
    return undefined;
  } catch (error) {
    if (!(error instanceof RpcResponseError && isRevert(error))) throw error;
    return nameOf(error);
  }
}

/**
 * Signs a claim of all that is unclaimed and the refund, stores both with their transaction, and
 * sends it. Nothing leaves this process before it is on the disk.
 *
 * The racer is another process that sends the same refund: the statement that stores asks for the
 * row's state and transaction. So one of both finds another row, and its signature never leaves it.
 *
 * @throws RefundMovedError, RpcError, DatabaseError, and what the signer throws
 */
async function sendRefund(
  { context: { ledger, faultPoint }, settlement, place }: ChannelsContext,
  signer: ClaimSigner,
  { found, plan }: { found: RefundCase; plan: Pick<RefundPlan, "nonce" | "amount"> },
): Promise<CallOutcome> {
  const { refund, config } = found;
  const { channelId } = refund;
  const { nonce, amount } = plan;
  const claim = claimOf(found);
  const calls: Hex[] = [];
  if (claim !== undefined) {
    const { voucher, totalClaimed } = claim;
    const entry = { channelId, maxClaimableAmount: voucher.ceiling, totalClaimed };
    const signature = await signer.sign(hashTypedData(claimBatchTypedData([entry], place)));
    const args = [[rowOf(claim)], signature] as const;
    calls.push(encodeFunctionData({ abi, functionName: "claimWithSignature", args }));
  }
  const message = { channelId, nonce, amount };
  const signature = await signer.sign(hashTypedData(channelRefundTypedData(message, place)));
  const args = [config, amount, nonce, signature] as const;
  calls.push(encodeFunctionData({ abi, functionName: "refundWithSignature", args }));
  await faultPoint("channel_refund_signed");
  const data = encodeCalls(calls);
  return callByRelayer(settlement, {
    to: refund.contract,
    data,
    gasLimit: gasLimitOf(data, refundGas + (claim === undefined ? 0n : claimGas)),
    isUrgent: false,
    async alongside(transaction, transactionId) {
      const claims = claim === undefined ? [] : [claimRow(refund, claim)];
      // First: it locks the channel, as the end of a refund does before its own row.
      await insertClaims(ledger, transaction, { transactionId, claims });
      const signed = { nonce, amount, transactionId };
      await recordRefundSent(ledger, transaction, { refund, signed });
    },
  });
}

/**
 * Sends a refund by the key of its channel. Returns whether it is on the disk, and on its way.
 *
 * @throws RefundMovedError, RpcError, DatabaseError, and what the signer throws
 */
export async function sendByKey(
  channels: ChannelsContext,
  found: RefundCase,
  plan: Pick<RefundPlan, "nonce" | "amount">,
): Promise<boolean> {
  const { context, settings, metrics, place } = channels;
  const { refund, config } = found;
  const { network } = place;
  const signer = settings.signers.find(({ address }) => address === config.receiverAuthorizer);
  if (signer === undefined) {
    // Its key was configured at the lock.
    context.logger.error(
      { network, channel: refund.channelId, authorizer: config.receiverAuthorizer },
      "a channel's refund waits for the key of its receiverAuthorizer, which is not configured",
    );
    return false;
  }
  const outcome = await sendRefund(channels, signer, { found, plan });
  if (outcome === "stored") metrics.refunds.inc({ network, outcome: "sent" });
  else {
    const { channelId: channel } = refund;
    context.logger.warn({ network, channel, because: outcome }, "a channel's refund waits");
  }
  return outcome === "stored";
}

function claimRow(
  { network, contract, channelId }: ChannelKey,
  { voucher, totalClaimed }: Claim,
): ChannelClaim {
  return { network, contract, channelId, totalClaimed, ...voucher };
}

/** All that is unclaimed; `undefined` where nothing is. */
function claimOf({ channel, config, atHead }: RefundCase): Claim | undefined {
  const { voucher, charged } = channel;
  const totalClaimed = lesser(charged, atHead.balance);
  if (voucher === undefined || totalClaimed <= atHead.totalClaimed) return undefined;
  return { config, voucher, totalClaimed };
}

function encodeCalls(calls: readonly Hex[]): Hex {
  const [only] = calls;
  if (calls.length === 1 && only !== undefined) return only;
  return encodeFunctionData({ abi, functionName: "multicall", args: [calls] });
}

function lesser(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
