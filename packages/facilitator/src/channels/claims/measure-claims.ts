import type { ClaimableChannel } from "../../ledger/channels/claimable.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { sumClaims } from "./sum-claims.ts";

/** Sets the gauges of unclaimed money, and of rows that cannot be claimed at the moment. */
export function measureClaims(
  { context: { ledger }, metrics, place: { network } }: ChannelsContext,
  dues: readonly ClaimableChannel[],
): void {
  const now = ledger.now();
  const { unclaimed, atRisk, since, deadline } = sumClaims(dues);
  const leftSeconds = deadline === undefined ? undefined : deadline.at - Math.floor(now / 1_000);
  metrics.unclaimed.set({ network }, Number(unclaimed));
  metrics.atRisk.set({ network }, Number(atRisk));
  metrics.refused.set({ network }, dues.filter(({ refusal }) => refusal !== undefined).length);
  metrics.oldestSeconds.set({ network }, Math.max(0, now - (since ?? now)) / 1_000);
  metrics.deadlineSeconds.set({ network }, leftSeconds ?? Number.POSITIVE_INFINITY);
  const ratio = deadline && leftSeconds && leftSeconds / deadline.withdrawDelay;
  metrics.deadlineRatio.set({ network }, ratio ?? Number.POSITIVE_INFINITY);
}

/** Removes the gauges: another process claims from now on, and has them. */
export function forgetClaimGauges({ metrics, place: { network } }: ChannelsContext): void {
  for (const gauge of [
    metrics.locked,
    metrics.unclaimed,
    metrics.atRisk,
    metrics.refused,
    metrics.oldestSeconds,
    metrics.deadlineSeconds,
    metrics.deadlineRatio,
  ]) {
    gauge.remove({ network });
  }
}
