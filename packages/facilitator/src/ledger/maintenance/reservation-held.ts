import type { Address, Reservation } from "@coinslot/protocol";
import { batchPerLedger, maxAtOnce } from "../batch-per-ledger.ts";
import { forProcess, type LedgerContext } from "../ledger-context.ts";
import { lockPayers } from "../payments/lock-payers.ts";
import { timeOfSortableId } from "../sortable-id.ts";
import { renewHeartbeat } from "./processes.ts";
import { isYoung } from "./sure-heartbeats.ts";

/**
 * Whether this process still holds a reservation, and goes on holding it. No statement where all
 * heartbeats since it was taken came in time: no other process can have taken it then. A young last
 * one alone says nothing, for a process sends it as soon as it wakes up.
 *
 * The racer is another process that takes the payment up after a freeze of this one. It decides
 * under the payer's lock. Before ours, the token is gone; behind it, our heartbeat is new.
 */
export async function isReservationHeld(
  ledger: LedgerContext,
  { token, id }: Reservation,
): Promise<boolean> {
  const { heartbeat } = ledger;
  const now = ledger.now();
  if (timeOfSortableId(token) > heartbeat.lapsedAt && isYoung(ledger, now)) return true;
  return lookForReservation(ledger, { token, payer: id.payer });
}

/** After a stall, all answers that are due ask at once. They share their statements. */
const lookForReservation = batchPerLedger(lookForReservations, { maxItems: maxAtOnce });

function lookForReservations(
  ledger: LedgerContext,
  reservations: readonly { token: string; payer: Address }[],
): Promise<boolean[]> {
  const { heartbeatLeaseMs, dialect, processId } = ledger;
  const payers = [...new Set(reservations.map(({ payer }) => payer))];
  const tokens = reservations.map(({ token }) => token);
  return ledger.write(async (transaction) => {
    await renewHeartbeat(ledger, transaction, { freshMs: heartbeatLeaseMs / 2 });
    await lockPayers({ transaction, dialect, payers, now: ledger.now() });
    const rows = await transaction
      .selectFrom("payments")
      .select("token")
      .where("token", "in", dialect.among(tokens))
      // A restored ledger may have it under the name of a former engine, which counts as dead.
      .where("owner", "=", processId)
      .execute();
    const held = new Set(rows.map(({ token }) => token));
    return tokens.map((token) => held.has(token));
  }, forProcess);
}
