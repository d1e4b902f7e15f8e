import type { LedgerContext } from "../ledger-context.ts";

type Heartbeats = Pick<LedgerContext, "heartbeat" | "heartbeatLeaseMs" | "now">;

/**
 * Records a heartbeat that was written, on the database's clock. Half a lease may have passed on
 * that clock since the last one, or it may be that much earlier. Then the database may have stood
 * still for all processes, or its clock was put forward or back. Living processes then look dead
 * until they have written another heartbeat. So they do to a process that has just joined: it does
 * not know of a standstill.
 */
export function noteHeartbeat(ledger: Heartbeats, writtenAt: number): void {
  const { heartbeat, heartbeatLeaseMs } = ledger;
  const now = ledger.now();
  const isLate =
    heartbeat.writtenAt === undefined ||
    Math.abs(writtenAt - heartbeat.writtenAt) >= heartbeatLeaseMs / 2;
  // Also where this process's own clock was put back while it was unsure.
  if (isLate || now < heartbeat.unsureSince) heartbeat.unsureSince = now;
}

/** False for a lease after the first heartbeat of this process, and after each late one. */
export function areHeartbeatsSure({ heartbeat, heartbeatLeaseMs, now }: Heartbeats): boolean {
  return now() - heartbeat.unsureSince >= heartbeatLeaseMs;
}

/** Whether the last heartbeat is so young that no other process counts this one as dead. */
export function isYoung(
  { heartbeat, heartbeatLeaseMs }: Pick<Heartbeats, "heartbeat" | "heartbeatLeaseMs">,
  now: number,
): boolean {
  const ageMs = now - heartbeat.sentAt;
  return ageMs >= 0 && ageMs < heartbeatLeaseMs / 2;
}
