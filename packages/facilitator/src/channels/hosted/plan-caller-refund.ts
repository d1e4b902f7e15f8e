import {
  type ChannelCallAnswer,
  type ChannelOperation,
  FacilitatorError,
} from "@coinslot/protocol";
import type { ChannelReading } from "../../ledger/channels/channel-state.ts";
import { isUnanimous, readByEach } from "../watch/read-by-each.ts";
import type { CallerRow } from "./claim-rows.ts";
import type { HostedContext, HostedNetwork } from "./hosted-context.ts";
import { readHead, readOne } from "./read-channel.ts";

export type Refund = Extract<ChannelOperation, { type: "refund" }>;
export type Refused = Extract<ChannelCallAnswer, { state: "refused" }>;

/** Content of a refund, and of the claim before it. */
export interface RefundPlan {
  amount: bigint;
  /** Empty where the chain has paid all of them. */
  rows: readonly CallerRow[];
  /** In a transaction of their own, which is deep enough before the refund is signed. */
  claimsFirst: boolean;
}

/**
 * Decides what is given back. The amount leaves all that the claims ask for: a sender that takes
 * the signed refund out of its transaction, and sends it before them, takes nothing of that. A
 * withdrawal that ends in between makes the balance smaller, so while one runs, the claims go
 * first.
 */
function planRefund(
  { settings: { signer } }: HostedContext,
  refund: Refund,
  rows: readonly CallerRow[],
  reading: ChannelReading,
): RefundPlan | Refused {
  const { refundNonce, amount: asked } = refund;
  if (refundNonce !== reading.refundNonce) {
    const message = `The escrow's refundNonce of the channel is ${reading.refundNonce}`;
    return { ...refuse("invalid_batch_settlement_evm_refund_simulation_failed"), message };
  }
  let claimed = reading.totalClaimed;
  for (const { totalClaimed } of rows) if (totalClaimed > claimed) claimed = totalClaimed;
  const left = reading.balance - claimed;
  if (left <= 0n) return refuse("invalid_batch_settlement_evm_refund_no_balance");
  const isOurs = signer !== undefined && refund.refundAuthorizerSignature === undefined;
  const isTooMuch = asked > left;
  if (isTooMuch && !isOurs) {
    const message = `The claims leave ${left} of the channel's balance`;
    return { ...refuse("invalid_batch_settlement_evm_refund_amount_invalid"), message };
  }
  const amount = isTooMuch ? left : asked;
  const isUnpaid = claimed > reading.totalClaimed;
  const claimsFirst = isUnpaid && reading.withdrawal !== undefined;
  return { amount, rows: isUnpaid ? rows : [], claimsFirst };
}

/**
 * Plans a refund by the channel as each endpoint that has a say has it. The escrow gives back less
 * where there is less: a signature for a balance that one node has made up takes claimed money.
 *
 * @throws FacilitatorError where the endpoints disagree, or one is awaited; RpcError, ZodError
 */
export async function planCallerRefund(
  hosted: HostedContext,
  network: HostedNetwork,
  { refund, rows }: { refund: Refund; rows: readonly CallerRow[] },
): Promise<RefundPlan | Refused> {
  const { channelId } = refund.voucher;
  const reading = await readOne(network, channelId, await readHead(network));
  const planned = planRefund(hosted, refund, rows, reading);
  if ("state" in planned) return planned;
  const votes = (await readByEach(network.escrow, { ids: [channelId] })).get(channelId);
  const plans: RefundPlan[] = [];
  const isAgreed = isUnanimous(votes, (each) => {
    const plan = planRefund(hosted, refund, rows, each);
    if (!("amount" in plan) || plan.amount !== planned.amount) return false;
    plans.push(plan);
    return true;
  });
  if (!isAgreed) throw disagreement();
  const all = [planned, ...plans];
  return {
    ...planned,
    rows: all.find((plan) => plan.rows.length > 0)?.rows ?? [],
    claimsFirst: all.some((plan) => plan.claimsFirst),
  };
}

export function disagreement(): FacilitatorError {
  return new FacilitatorError("Nodes disagree about the channel", { kind: "unavailable" });
}

export function refuse(reason: Refused["reason"]): Refused {
  return { state: "refused", reason };
}
