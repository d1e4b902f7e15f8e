import type { Hex } from "@coinslot/protocol";
import { readCall } from "../../ledger/channels/caller-calls.ts";
import type { HostedContext, Permit } from "./hosted-context.ts";

/**
 * Whether a caller's next call may be sent. Its open transactions have a quarter of a relayer's
 * places; where a withdrawal takes money, half of them. So no caller fills the places of the
 * others, or of payments. It counts the calls of this process, as relayers do.
 *
 * @throws DatabaseError
 */
export async function hasRoomFor(
  { sent }: Pick<HostedContext, "sent">,
  permitted: Permit,
  { isUrgent }: { isUrgent: boolean },
): Promise<boolean> {
  const { escrow } = permitted.network;
  const key = keyOf(permitted);
  const own = sent.get(key);
  if (own === undefined) return true;
  for (const id of own) {
    const call = await readCall(escrow.context.ledger, { ...escrow.place, id });
    if (call?.state !== "sent" || call.transaction?.state !== "open") own.delete(id);
  }
  if (own.size === 0) sent.delete(key);
  const { maxInFlight } = escrow.settlement.network;
  return own.size < Math.max(1, Math.floor(maxInFlight / (isUrgent ? 2 : 4)));
}

/** Counts a call that was sent. */
export function rememberSent(
  { sent }: Pick<HostedContext, "sent">,
  permitted: Permit,
  id: Hex,
): void {
  const key = keyOf(permitted);
  const own = sent.get(key) ?? new Set();
  own.add(id);
  sent.set(key, own);
}

function keyOf({ caller, network: { escrow } }: Permit): string {
  return `${escrow.place.network}/${caller}`;
}
