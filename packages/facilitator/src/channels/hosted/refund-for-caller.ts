import { isRevert, RpcResponseError } from "@coinslot/chain";
import {
  type ChannelCallAnswer,
  channelRefundTypedData,
  channelSettlementAbi,
  type Hex,
} from "@coinslot/protocol";
import { encodeFunctionData, hashTypedData } from "viem";
import { topicOf } from "../../evm/topic-of.ts";
import { type CallerCall, findLastCall, readCall } from "../../ledger/channels/caller-calls.ts";
import { gasOfClaims } from "../claims/send-claims.ts";
import { nameOf, rowOf } from "../claims/try-claims.ts";
import { refundGas } from "../refunds/send-refund.ts";
import { authorize, signBy } from "./authorize.ts";
import { claimForCaller } from "./claim-for-caller.ts";
import { type CallerRow, digestOf, encodeClaim, longSignature, rowsOf } from "./claim-rows.ts";
import { byEvent, type Evidence, followCall, lookAtCall } from "./follow-call.ts";
import type { HostedContext, HostedNetwork, Permit } from "./hosted-context.ts";
import {
  disagreement,
  planCallerRefund,
  type Refund,
  type Refused,
  refuse,
} from "./plan-caller-refund.ts";
import { readHead, readOne, stateOf } from "./read-channel.ts";
import { callIdOf, requireGas, sendCall } from "./send-call.ts";
import { withTrial } from "./with-trial.ts";

const abi = channelSettlementAbi;
const refundedTopic = topicOf("Refunded(bytes32,address,uint128)");

/**
 * Gives back what a caller's channel holds, after the claims that its seller sends along, in one
 * transaction. The nonce of the escrow lets it happen once. The seller alone knows what was
 * charged: an amount that reaches into it is its own loss.
 *
 * @throws FacilitatorError, CallerLimitedError, RpcError, ZodError, DatabaseError
 */
export async function refundForCaller(
  hosted: HostedContext,
  permitted: Permit,
  refund: Refund,
): Promise<ChannelCallAnswer> {
  const { network } = permitted;
  const { channelId } = refund.voucher;
  const rows = rowsOf(network, refund.claims);
  const wrong = checkContent(network, refund, rows);
  if (wrong !== undefined) return wrong;
  const parts = rows.flatMap(({ voucher, totalClaimed }) => [voucher.ceiling, totalClaimed]);
  const id = callIdOf("refund", [channelId, refund.refundNonce, refund.amount, ...parts]);
  const subject = `refund/${channelId}`;
  const begun = await hosted.turns.run(`${network.escrow.place.network}/${subject}`, () =>
    begin(hosted, permitted, { id, subject, refund, rows }),
  );
  if (begun !== "sent") return begun;
  const key = { ...network.escrow.place, id };
  const evidence = evidenceOf(network, { channelId, value: refund.amount });
  const call = await followCall(hosted, permitted, key, evidence);
  return answerOf(network, refund, call);
}

function checkContent(
  { digests }: HostedNetwork,
  { channelConfig: config, voucher: { channelId }, amount }: Refund,
  rows: readonly CallerRow[],
): Refused | undefined {
  if (digests.channelIdOf(config) !== channelId) {
    return refuse("invalid_batch_settlement_evm_channel_id_mismatch");
  }
  // A claim of other channels would hide behind the refund's gas and its one signature.
  if (rows.some((row) => row.channelId !== channelId)) return refuse("invalid_payload");
  if (amount === 0n) return refuse("invalid_batch_settlement_evm_refund_amount_invalid");
  return undefined;
}

async function begin(
  hosted: HostedContext,
  permitted: Permit,
  request: { id: Hex; subject: string; refund: Refund; rows: readonly CallerRow[] },
): Promise<ChannelCallAnswer | "sent"> {
  const { id, subject, refund, rows } = request;
  const { network, caller } = permitted;
  const { context, place } = network.escrow;
  const { channelConfig: config, voucher } = refund;
  const known = await readCall(context.ledger, { ...place, id });
  if (known?.state === "sent") return "sent";
  if (known?.state === "done") return answerOf(network, refund, known);
  const busy = await findBusy(network, { subject, channelId: voucher.channelId });
  if (busy !== undefined) return busy;
  let planned = await planCallerRefund(hosted, network, { refund, rows });
  if ("state" in planned) return countRefused(network, planned);
  if (planned.claimsFirst) {
    const claims = { type: "claim", claims: refund.claims } as const;
    const { claimAuthorizerSignature } = refund;
    const claimed = await claimForCaller(hosted, permitted, {
      ...claims,
      claimAuthorizerSignature,
    });
    if (claimed.state !== "done") return { ...claimed, payer: config.payer };
    // That is one node's word. The others may still show the money as unpaid.
    planned = await planCallerRefund(hosted, network, { refund, rows });
    if ("state" in planned) return countRefused(network, planned);
    if (planned.claimsFirst) throw disagreement();
  }
  const { amount, rows: claimed } = planned;
  const signers = authorizeAll(hosted, network, { refund, rows: claimed, amount });
  if ("reason" in signers) return refuse(signers.reason);
  const gas = refundGas + (claimed.length === 0 ? 0n : gasOfClaims(claimed));
  const encode = (ofRefund: Hex, ofClaim: Hex) => {
    const claims = claimed.length === 0 ? [] : [encodeClaim(claimed, ofClaim)];
    const args = [config, amount, refund.refundNonce, ofRefund] as const;
    const call = encodeFunctionData({ abi, functionName: "refundWithSignature", args });
    return encodeCalls([...claims, call]);
  };
  const longest = encode(longSignature, longSignature);
  await requireGas(hosted, permitted, { data: longest, gas, isByBuyer: true });
  const fault = await withTrial({ ...hosted, caller }, async () => {
    const result = await tryRefund(network, { config, amount }, claimed);
    return { isVain: result !== undefined, result };
  });
  if (fault !== undefined) return countRefused(network, fault);
  const { ofClaim, ofRefund } = signers;
  const claimSignature = ofClaim === undefined ? longSignature : await ofClaim();
  await sendCall(hosted, permitted, {
    id,
    kind: "refund",
    subject,
    data: encode(await ofRefund(), claimSignature),
    gas,
    // Both give the money to the payer; what was charged is claimed before.
    isUrgent: false,
    replaces: known?.transactionId,
  });
  return "sent";
}

/** The signatures of a refund and of the claim before it, each to be made once. */
function authorizeAll(
  hosted: HostedContext,
  network: HostedNetwork,
  { refund, rows, amount }: { refund: Refund; rows: readonly CallerRow[]; amount: bigint },
) {
  const { voucher, refundNonce: nonce } = refund;
  const { receiverAuthorizer } = refund.channelConfig;
  const message = { channelId: voucher.channelId, nonce, amount };
  const digest = hashTypedData(channelRefundTypedData(message, network.escrow.place));
  const signature = refund.refundAuthorizerSignature;
  const refunding = authorize(hosted, { receiverAuthorizer, signature, digest });
  if ("reason" in refunding) return refunding;
  const ofRefund = () => signBy(refunding, digest);
  if (rows.length === 0) return { ofRefund, ofClaim: undefined };
  const ofRows = {
    receiverAuthorizer,
    signature: refund.claimAuthorizerSignature,
    digest: digestOf(network, rows),
  };
  const claiming = authorize(hosted, ofRows);
  if ("reason" in claiming) return claiming;
  return { ofRefund, ofClaim: () => signBy(claiming, ofRows.digest) };
}

/** Another refund of the channel whose outcome is open: one of both would be sent in vain. */
async function findBusy(
  network: HostedNetwork,
  { subject, channelId }: { subject: string; channelId: Hex },
): Promise<Refused | undefined> {
  const { context, place } = network.escrow;
  const last = await findLastCall(context.ledger, { ...place, subject });
  if (last?.state !== "sent") return undefined;
  // If it has moved nothing, it was for no more than this.
  const { balance: value } = await readOne(network, channelId, await readHead(network));
  const evidence = evidenceOf(network, { channelId, value });
  const now = await lookAtCall(network, { ...place, id: last.id }, evidence);
  return now?.state === "sent" ? refuse("invalid_batch_settlement_evm_channel_busy") : undefined;
}

function countRefused({ escrow: { metrics, place } }: HostedNetwork, refused: Refused): Refused {
  metrics.callerCalls.inc({ network: place.network, kind: "refund", outcome: "refused" });
  return refused;
}

/**
 * Tries claim and refund in one `eth_call`, as their authorizer would send them: that needs no
 * signature. A refund's signature could be sent without the claim before it.
 */
async function tryRefund(
  { escrow: { settlement, place } }: HostedNetwork,
  { config, amount }: { config: Refund["channelConfig"]; amount: bigint },
  rows: readonly CallerRow[],
): Promise<Refused | undefined> {
  const claim = encodeFunctionData({ abi, functionName: "claim", args: [rows.map(rowOf)] });
  const refund = encodeFunctionData({ abi, functionName: "refund", args: [config, amount] });
  const data = encodeCalls(rows.length === 0 ? [refund] : [claim, refund]);
  const call = { from: config.receiverAuthorizer, to: place.contract, data };
  try {
    await settlement.network.rpc.request({ method: "eth_call", params: [call, "latest"] });
    return undefined;
  } catch (error) {
    if (!(error instanceof RpcResponseError && isRevert(error))) throw error;
    const name = nameOf(error);
    return {
      ...refuse("invalid_batch_settlement_evm_refund_simulation_failed"),
      ...(/^[A-Z][A-Za-z]+$/.test(name) ? { message: name } : {}),
    };
  }
}

function encodeCalls(calls: readonly Hex[]): Hex {
  const [only] = calls;
  if (calls.length === 1 && only !== undefined) return only;
  return encodeFunctionData({ abi, functionName: "multicall", args: [calls] });
}

/** The event of our transaction: a refund may succeed and move nothing. */
function evidenceOf(
  { escrow: { place } }: HostedNetwork,
  { channelId, value }: { channelId: Hex; value: bigint },
): Evidence {
  return byEvent(
    value,
    ({ address, topics }) =>
      address === place.contract && topics[0] === refundedTopic && topics[1] === channelId,
  );
}

async function answerOf(
  network: HostedNetwork,
  { channelConfig: { payer }, voucher: { channelId } }: Refund,
  call: CallerCall | undefined,
): Promise<ChannelCallAnswer> {
  const transaction = call?.hash;
  if (call === undefined || call.state === "sent") return { state: "pending", transaction, payer };
  if (call.state === "failed") {
    const reason = "invalid_batch_settlement_evm_refund_transaction_failed";
    return { state: "refused", reason, transaction, payer };
  }
  const reading = await readOne(network, channelId, await readHead(network));
  const { amount } = call;
  return { state: "done", transaction, payer, amount, channelState: stateOf(channelId, reading) };
}
