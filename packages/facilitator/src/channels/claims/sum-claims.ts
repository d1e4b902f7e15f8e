import type { ClaimableChannel } from "../../ledger/channels/claimable.ts";
import { moneyAtRisk } from "../money-at-risk.ts";

/** Sums of unclaimed money. Amounts are in the token's smallest unit. */
export interface ClaimSums {
  /** Charged and not claimed at the head. */
  unclaimed: bigint;
  /** Of that, the part that payers withdraw. */
  atRisk: bigint;
  /** First charge of the oldest unclaimed money, in Unix milliseconds. */
  since: number | undefined;
  /** The next time at which a payer may take unclaimed money away, in Unix seconds. */
  deadline: { at: number; withdrawDelay: number } | undefined;
}

/** Charged and not claimed at the head. Money that is claimed there waits for its depth alone. */
export function unclaimedOf({ channel, state }: Pick<ClaimableChannel, "channel" | "state">) {
  const claimed = state?.totalClaimed ?? 0n;
  return channel.charged > claimed ? channel.charged - claimed : 0n;
}

/** Sums channels with unclaimed money. */
export function sumClaims(dues: readonly ClaimableChannel[]): ClaimSums {
  const sums: ClaimSums = { unclaimed: 0n, atRisk: 0n, since: undefined, deadline: undefined };
  for (const due of dues) {
    const { channel, state, since, config } = due;
    const open = unclaimedOf(due);
    if (open === 0n) continue;
    sums.unclaimed += open;
    sums.since = Math.min(since, sums.since ?? since);
    const risk = state === undefined ? 0n : moneyAtRisk(channel, state);
    if (state?.withdrawal === undefined || risk === 0n) continue;
    sums.atRisk += risk;
    const { withdrawDelay } = config;
    const at = state.withdrawal.initiatedAt + withdrawDelay;
    if (at < (sums.deadline?.at ?? Number.POSITIVE_INFINITY)) sums.deadline = { at, withdrawDelay };
  }
  return sums;
}
