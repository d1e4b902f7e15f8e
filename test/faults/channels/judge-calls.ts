import type { Hex } from "@coinslot/protocol";
import type { EscrowRecord } from "./channel-record.ts";
import type { HostedCall, HostedSeller } from "./hosted-run.ts";

interface CallEvidence {
  sellers: readonly HostedSeller[];
  escrow: EscrowRecord;
  /** The deposit of each channel before the run. */
  first: bigint;
}

/**
 * Violations: calls that were lost, made twice, or answered otherwise than the chain has them.
 *
 * @param isExecuted whether the canonical chain has a transaction, and has not reverted it
 */
export async function findCallViolations(
  isExecuted: (hash: Hex) => Promise<boolean>,
  { sellers, escrow, first }: CallEvidence,
): Promise<string[]> {
  const problems: string[] = [];
  for (const seller of sellers) {
    const { channelId } = seller;
    const tell = (words: string) => problems.push(`channel ${channelId}: ${words}`);
    const onChain = escrow.channels.get(channelId);
    if (onChain === undefined) {
      tell("is not on the chain");
      continue;
    }
    for (const { kind, amount, outcome } of seller.calls) {
      if (!outcome.isDone) tell(`a ${kind} of ${amount} came to nothing: ${outcome.reason}`);
      const isCounted = kind === "deposit" || kind === "refund";
      if (isCounted && outcome.isDone && outcome.amount !== amount) {
        tell(`a ${kind} of ${amount} was answered as one of ${outcome.amount}`);
      }
      const { hash } = outcome;
      if (hash !== undefined && !(await isExecuted(hash))) {
        tell(`the ${kind}'s ${hash} is not on the chain`);
      }
    }
    // One that was asked for twice at once is one call.
    const amountsOf = (kind: HostedCall["kind"]) =>
      seller.calls.flatMap((each) => (each.kind === kind && !each.isRepeated ? [each.amount] : []));
    const deposits = [first, ...amountsOf("deposit")];
    if (`${onChain.deposits}` !== `${deposits}`) {
      tell(`deposited ${onChain.deposits}, asked for ${deposits}`);
    }
    const refunds = amountsOf("refund");
    if (`${onChain.refunds}` !== `${refunds}`) {
      tell(`refunded ${onChain.refunds}, asked for ${refunds}`);
    }
    const claimed = amountsOf("claim").at(-1) ?? 0n;
    if (onChain.totalClaimed !== claimed) tell(`${onChain.totalClaimed} claimed of ${claimed}`);
  }
  const { claimed, settled, arrived, waiting } = escrow;
  if (new Set([claimed, settled, arrived]).size > 1) {
    problems.push(`claimed ${claimed}, settled ${settled}, arrived ${arrived}`);
  }
  if (waiting > 0) problems.push(`${waiting} transactions still wait in the mempool`);
  return problems;
}
