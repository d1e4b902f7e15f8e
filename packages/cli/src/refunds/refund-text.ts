import type { RefundRecord } from "@coinslot/facilitator";
import {
  type Address,
  findKnownToken,
  formatMoney,
  type Network,
  symbolOf,
} from "@coinslot/protocol";

/** An amount for people: `0.001 USDT0`, or in units of a token that is in no table of ours. */
export function formatAmount(
  { network, asset }: { network: Network; asset: Address },
  value: bigint,
): string {
  const known = findKnownToken(network, asset);
  if (known === undefined) return `${value} units of ${asset}`;
  return `${formatMoney(value, known.decimals)} ${symbolOf(known)}`;
}

/** A refund for people and scripts: times in ISO 8601, amounts exact. `null`: there is none. */
export function toRefundRow(refund: RefundRecord) {
  const { id, payment, n, state, cause, origin, network, asset, payer, amount, requested } = refund;
  const { reason, nonce, float, validBefore, operation, transactionHash, blockNumber } = refund;
  const known = findKnownToken(network, asset);
  return {
    id,
    payment,
    route: refund.route ?? null,
    resource: refund.resource ?? null,
    n,
    state,
    cause: cause ?? null,
    origin,
    network,
    asset,
    payer,
    value: amount.toString(),
    amount: known ? formatMoney(amount, known.decimals) : null,
    requested: requested?.toString() ?? null,
    reason: reason ?? null,
    nonce,
    float: float ?? null,
    validBefore: validBefore === undefined ? null : toIso(Number(validBefore) * 1000),
    operation: operation ?? null,
    transaction: transactionHash ?? null,
    block: blockNumber ?? null,
    createdAt: toIso(refund.createdAt),
    signedAt: toIso(refund.signedAt),
    confirmedAt: toIso(refund.confirmedAt),
    finalAt: toIso(refund.finalAt),
  };
}

function toIso(milliseconds: number | undefined): string | null {
  return milliseconds === undefined ? null : new Date(milliseconds).toISOString();
}

/** A state with the reason of it, such as `waiting: float_balance`. */
export function formatState({ state, cause }: Pick<RefundRecord, "state" | "cause">): string {
  return cause === undefined ? state : `${state}: ${cause}`;
}

const meanings: Readonly<Record<string, string>> = {
  scheduled: "It is sent once its payment is final.",
  unsigned: "It waits for a signature: coinslot refunds export, sign, submit.",
  review: "Its payer is a contract: coinslot refunds approve lets it go to that address.",
  blocked: "The token refuses the transfer. coinslot refunds approve tries it again.",
  manual:
    "No signature can pay it: send it yourself, then coinslot refunds paid; or coinslot refunds cancel.",
};

/** The next step of a refund, in words; `undefined`: there is none to explain. */
export function explainState(state: string): string | undefined {
  return meanings[state];
}
