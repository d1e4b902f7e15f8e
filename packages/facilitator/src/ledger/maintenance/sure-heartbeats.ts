import type { LedgerContext } from "../ledger-context.ts";

type Heartbeats = Pick<LedgerContext, "heartbeat" | "heartbeatLeaseMs" | "now">;

/**
 * Records a heartbeat that was written, on the database's clock. Where that clock has run half a
 * lease further than this process's one since the last heartbeat, it was put forward. Living
 * processes then look dead until they have written another one.
 */
export function noteHeartbeat(ledger: Heartbeats, writtenAt: number): void {
  const { heartbeat, heartbeatLeaseMs } = ledger;
  // The first one of this process.
  if (heartbeat.writtenAt === undefined) return;
  const now = ledger.now();
  // The last one was written after `sentAt`, and this one before now: the true difference is no less.
  const aheadMs = writtenAt - heartbeat.writtenAt - (now - heartbeat.sentAt);
  if (aheadMs >= heartbeatLeaseMs / 2) heartbeat.unsureSince = now;
}

/** False for a lease after the database's clock was put forward. */
export function areHeartbeatsSure({ heartbeat, heartbeatLeaseMs, now }: Heartbeats): boolean {
  const ageMs = now() - heartbeat.unsureSince;
  // Less than 0: this process's own clock was put back.
  return ageMs < 0 || ageMs >= heartbeatLeaseMs;
}

/** Whether the last heartbeat is so young that no other process counts this one as dead. */
export function isYoung(
  { heartbeat, heartbeatLeaseMs }: Pick<Heartbeats, "heartbeat" | "heartbeatLeaseMs">,
  now: number,
): boolean {
  const ageMs = now - heartbeat.sentAt;
  return ageMs >= 0 && ageMs < heartbeatLeaseMs / 2;
}
