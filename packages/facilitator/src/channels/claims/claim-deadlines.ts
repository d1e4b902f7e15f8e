import type { EscrowContext } from "../channels-context.ts";
import type { ClaimCandidate } from "./choose-claims.ts";
import type { RefusedRow } from "./try-claims.ts";

/** The last part of a delay, in which rows are claimed alone. */
const nearShare = 10;
/** Gas of a claim of one row, in rows of a full claim. */
const aloneFactor = 3n;

/**
 * Unix seconds: this process's clock or the chain's, the later one. A clock that is wrong then
 * costs gas, and no deadline.
 *
 * @throws RpcError
 */
export async function readClaimTime({
  context: { ledger },
  settlement: { network },
}: EscrowContext): Promise<number> {
  const { timestamp } = await network.watcher.read(network.pollMs);
  return Math.max(ledger.now() / 1_000, Number(timestamp));
}

/**
 * Divides rows into claims. Near the end of its delay, a payer may empty its channel in front of a
 * claim, which then reverts. So such a row goes alone where it is worth that, and never with those
 * that have time.
 *
 * @param limits.maxAlone claims of one row, at most
 */
export function divideRows(
  rows: readonly ClaimCandidate[],
  { time, claimCost, maxAlone }: { time: number; claimCost: bigint; maxAlone: number },
): ClaimCandidate[][] {
  const near = rows.filter(
    ({ deadline, config }) =>
      deadline !== undefined && deadline - time < config.withdrawDelay / nearShare,
  );
  const alone = near.filter(({ gain }) => gain >= claimCost * aloneFactor).slice(0, maxAlone);
  const others = near.filter((row) => !alone.includes(row));
  const timely = rows.filter((row) => !near.includes(row));
  return [...alone.map((row) => [row]), others, timely].filter(({ length }) => length > 0);
}

/**
 * A node alone has refused the row, and its deadline comes nearer: a transaction that reverts costs
 * less than unclaimed money. The words of the refusal do not matter. By the channel's mirror, the
 * escrow has the money. A node that is behind the last deposit says that it has not.
 */
export function isLastChance({ candidate }: RefusedRow, time: number): boolean {
  const { deadline, config } = candidate;
  if (deadline === undefined) return false;
  return deadline - time < (config.withdrawDelay * 2) / 3;
}
