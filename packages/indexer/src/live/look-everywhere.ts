import type { RpcEndpointHandle, RpcPool } from "@coinslot/chain";
import type { SyncEvent } from "./sync-event.ts";

/** What a look at a chain found, and where. */
export interface Look {
  event: SyncEvent;
  endpoint: number;
  /** Of a final block that was replaced: an endpoint that could not be asked. */
  unasked: number | undefined;
}

/**
 * Looks at a chain at one endpoint. One broken endpoint must not decide about final blocks: that one was replaced is the
 * answer when every endpoint was asked and none has ours. The first that has it is followed.
 */
export async function lookEverywhere(
  pool: RpcPool,
  read: (handle: RpcEndpointHandle) => Promise<SyncEvent>,
  signal: AbortSignal,
): Promise<Look> {
  const { event, endpoint } = await pool.onEndpoint(
    async (handle) => ({ event: await read(handle), endpoint: handle.endpoint }),
    { signal },
  );
  if (event.type !== "beyond-finality") return { event, endpoint, unasked: undefined };
  let unasked: number | undefined;
  for (const other of pool.endpoints) {
    if (other.endpoint === endpoint) continue;
    try {
      const found = await read(other);
      if (found.type !== "beyond-finality")
        return { event: found, endpoint: other.endpoint, unasked: undefined };
    } catch {
      unasked = other.endpoint;
    }
  }
  return { event, endpoint, unasked };
}
