import type { RpcEndpointHandle } from "@coinslot/chain";
import type { ChainContext } from "../chain-context.ts";
import type { SyncEvent } from "./sync-event.ts";

/** Result of a poll of a chain, and its endpoint. */
export interface Poll {
  event: SyncEvent;
  endpoint: number;
  /** Where a final block was replaced: an endpoint that gave no answer on that block. */
  unasked: number | undefined;
}

/**
 * Polls a chain at one endpoint. One broken endpoint must not decide about final blocks. A final
 * block counts as replaced when every endpoint was asked and none has it. The first endpoint that
 * has it is followed. An endpoint whose head is below the block says nothing of it: it could not be
 * asked. Outvoted endpoints are not asked.
 *
 * `isStale`: nothing has changed for too long. The others are asked, for the endpoint may show an
 * old head for ever. One that has more blocks leads: it is read first. Its lead ends where nothing
 * changes once more, or one before it in the list has come as far: it may have made its block up.
 *
 * `isConfirming`: the others are asked for the block itself, so a chain shorter than the indexed
 * one counts, too.
 */
export async function pollEverywhere(
  { pool, outvoted }: Pick<ChainContext, "pool" | "outvoted">,
  read: (handle: RpcEndpointHandle, isConfirming: boolean) => Promise<SyncEvent>,
  { signal, isStale = false }: { signal: AbortSignal; isStale?: boolean },
): Promise<Poll> {
  if (isStale) pool.lead(undefined);
  const { event, endpoint } = await pool.onEndpoint(
    async (handle) => ({ event: await read(handle, false), endpoint: handle.endpoint }),
    { signal },
  );
  const others = pool.endpoints.filter(
    (other) => other.endpoint !== endpoint && !outvoted.has(other.endpoint),
  );
  if (event.type === "unchanged" && isStale)
    for (const other of others) {
      const found = await read(other, false).catch(() => undefined);
      signal.throwIfAborted();
      if (found === undefined || !isAhead(found, event)) continue;
      pool.lead(other.endpoint);
      return { event: found, endpoint: other.endpoint, unasked: undefined };
    }
  if (event.type === "advanced" && pool.leader() === endpoint)
    for (const other of others.filter((each) => each.endpoint < endpoint)) {
      const found = await read(other, false).catch(() => undefined);
      signal.throwIfAborted();
      if (found === undefined || found.head.number < event.head.number) continue;
      pool.lead(undefined);
      break;
    }
  if (event.type !== "beyond-finality") return { event, endpoint, unasked: undefined };
  let unasked: number | undefined;
  for (const other of others) {
    try {
      const found = await read(other, true);
      if (found.type === "beyond-finality") continue;
      if (found.head.number >= event.replaced.number)
        return { event: found, endpoint: other.endpoint, unasked: undefined };
      unasked = other.endpoint;
    } catch {
      unasked = other.endpoint;
    }
  }
  return { event, endpoint, unasked };
}

/** A different block must be of a longer chain: an endpoint that is on a fork changes nothing. */
function isAhead({ type, head }: SyncEvent, than: SyncEvent): boolean {
  if (type === "reorganised") return head.number > than.head.number;
  return type === "advanced" || type === "fell-behind";
}
