import { type RpcEndpointHandle, RpcError, type RpcPool } from "@coinslot/chain";
import * as z from "zod";

/**
 * True if each endpoint that has a say confirms a fact of the chain, and at least one does. What
 * gives money away is not decided by one node's word. An endpoint that does not answer, or returns
 * malformed data, has no say.
 *
 * @param ask `undefined`: the endpoint has no say, since it is behind or lacks the data
 */
export async function isConfirmed(
  { endpoints }: Pick<RpcPool, "endpoints">,
  ask: (endpoint: RpcEndpointHandle) => Promise<boolean | undefined>,
): Promise<boolean> {
  const votes = await Promise.all(endpoints.map((endpoint) => ask(endpoint).catch(ignoreFault)));
  return votes.includes(true) && !votes.includes(false);
}

function ignoreFault(error: unknown): undefined {
  if (!(error instanceof RpcError || error instanceof z.ZodError)) throw error;
}
