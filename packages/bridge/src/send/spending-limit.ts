import { formatEther, isAddressEqual } from "viem";
import { parseRecipient } from "../addresses/parse-recipient.ts";
import { BridgeError } from "../bridge-error.ts";
import type { CheckedRequest } from "../bridge-request.ts";
import type { EvmBridgeChain } from "../chains/bridge-chain.ts";
import { lowerTo, maxPerGas } from "../quote/gas-price.ts";
import type { TransferPlan } from "../quote/plan-transfer.ts";
import type { BridgeQuote } from "../quote/quote-transfer.ts";

/** The agreed terms of a quote. */
export type AgreedTerms = Pick<
  BridgeQuote,
  | "sourceChain"
  | "targetChain"
  | "recipient"
  | "token"
  | "amountSent"
  | "amountReceived"
  | "fee"
  | "bridgeFee"
  | "contract"
>;

/**
 * The most that one transfer may take of the native coin, in all: LayerZero's fee, gas and data,
 * approvals included.
 */
export interface SpendingLimit {
  maxTotal: bigint;
  /** Origin of the limit: the terms or the configuration. */
  source: "agreed" | "configured";
}

/**
 * The tighter one of the agreed limit and the configured limit.
 *
 * @throws BridgeError `invalid_configuration` where neither bounds the cost of gas
 */
export function readSpendingLimit(options: {
  agreed: AgreedTerms | undefined;
  maxTotalFee: bigint | undefined;
}): SpendingLimit {
  const { agreed, maxTotalFee } = options;
  const agreedTotal = agreed && agreed.fee + agreed.bridgeFee;
  if (agreedTotal !== undefined && (maxTotalFee === undefined || agreedTotal <= maxTotalFee)) {
    return { maxTotal: agreedTotal, source: "agreed" };
  }
  if (maxTotalFee !== undefined) return { maxTotal: maxTotalFee, source: "configured" };
  const text = "bridge: the gas costs have no bound. Pass the quote as agreed, or set maxTotalFee";
  throw new BridgeError("invalid_configuration", text);
}

/**
 * Compares a new plan with the agreed terms. Between a quote and the send, a person may have
 * thought, and an approval may have been mined. A node may answer differently.
 *
 * @throws BridgeError `terms_changed`
 */
export function checkTerms(
  plan: TransferPlan,
  options: {
    agreed: AgreedTerms;
    committed: bigint;
    request: CheckedRequest;
    source: EvmBridgeChain;
  },
): void {
  const { agreed, committed, request, source } = options;
  const { amountSent, amountReceived, contract } = plan;
  const { target, to, token } = request;
  if (source.key !== agreed.sourceChain || target.key !== agreed.targetChain) {
    const [now, then] = [
      [source.key, target.key],
      [agreed.sourceChain, agreed.targetChain],
    ];
    throw changed(
      `It would go from ${now.join(" to ")} now, instead of from ${then.join(" to ")}`,
      committed,
    );
  }
  if (parseRecipient(agreed.recipient, target) !== to) {
    throw changed(`Its recipient would be another one than ${agreed.recipient}`, committed);
  }
  if (!isAddressEqual(agreed.token, token)) {
    throw changed(`The token would be ${token} now, instead of ${agreed.token}`, committed);
  }
  if (amountSent > agreed.amountSent) {
    throw changed(
      `${amountSent} would leave now, and ${agreed.amountSent} were agreed to`,
      committed,
    );
  }
  if (amountReceived < agreed.amountReceived) {
    const text = `${amountReceived} would arrive now, and ${agreed.amountReceived} were agreed to`;
    throw changed(text, committed);
  }
  if (contract.toLowerCase() !== agreed.contract.toLowerCase()) {
    throw changed(`It would go through ${contract} now, instead of ${agreed.contract}`, committed);
  }
}

/**
 * Fits a plan into the remaining limit. After a rise of the gas price, the room for the next blocks
 * shrinks first. The transaction offers less per gas, down to a price that the next block may take.
 *
 * @param committed the most that earlier transactions of this transfer can have cost
 * @throws BridgeError `terms_changed`, `total_fee_above_maximum`
 */
export function fitToLimit(
  plan: TransferPlan,
  { limit, committed }: { limit: SpendingLimit; committed: bigint },
): TransferPlan {
  const { gas, gasPrice, minPerGas, dataFee, fee, bridgeFee } = plan;
  const left = limit.maxTotal - committed;
  if (fee + bridgeFee <= left) return plan;
  const room = left - bridgeFee - dataFee;
  if (room >= gas * minPerGas) {
    const perGas = room / gas;
    return { ...plan, gasPrice: lowerTo(perGas, gasPrice), fee: gas * perGas + dataFee };
  }
  throw aboveLimit({ needed: committed + fee + bridgeFee, limit, committed });
}

/**
 * Checks the gas of one approval, which a node estimates apart from the plan.
 *
 * @throws BridgeError `terms_changed`, `total_fee_above_maximum`
 */
export function checkApproval(
  { gasPrice, bridgeFee }: TransferPlan,
  options: { gas: bigint; limit: SpendingLimit; committed: bigint },
): void {
  const { gas, limit, committed } = options;
  const needed = committed + gas * maxPerGas(gasPrice) + bridgeFee;
  if (needed > limit.maxTotal) throw aboveLimit({ needed, limit, committed });
}

function aboveLimit(options: {
  needed: bigint;
  limit: SpendingLimit;
  committed: bigint;
}): BridgeError {
  const { needed, limit, committed } = options;
  const costs = `Gas and LayerZero's fee may cost ${formatEther(needed)} of the native coin in all`;
  const most = formatEther(limit.maxTotal);
  if (limit.source === "agreed") {
    return changed(`${costs}, and at most ${most} were agreed to`, committed);
  }
  const text = `${costs}, above maxTotalFee, ${most}. ${soFar(committed)}`;
  return new BridgeError("total_fee_above_maximum", text);
}

function changed(text: string, committed: bigint): BridgeError {
  return new BridgeError("terms_changed", `${text}. ${soFar(committed)}`);
}

function soFar(committed: bigint): string {
  return committed === 0n
    ? "Nothing was sent"
    : "The approval was sent, and no token has moved: run the same transfer again";
}
