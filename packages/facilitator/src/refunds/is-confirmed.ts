import { type RpcEndpointHandle, RpcError, type RpcPool } from "@coinslot/chain";
import * as z from "zod";

/** What the endpoints say that have a say: all the same, not all the same, or none has one. */
export type Vote = "confirmed" | "denied" | "disputed" | "silent";

/**
 * Confirmed if each endpoint that has a say confirms a fact of the chain, and at least one does.
 * What gives money away is not decided by one node's word. An endpoint that does not answer, or
 * returns malformed data, has no say.
 *
 * @param ask `undefined`: the endpoint has no say, since it is behind or lacks the data
 */
export async function askEach(
  { endpoints }: Pick<RpcPool, "endpoints">,
  ask: (endpoint: RpcEndpointHandle) => Promise<boolean | undefined>,
): Promise<Vote> {
  const votes = await Promise.all(endpoints.map((endpoint) => ask(endpoint).catch(ignoreFault)));
  const [isConfirmed, isDenied] = [votes.includes(true), votes.includes(false)];
  if (isConfirmed && isDenied) return "disputed";
  if (isDenied) return "denied";
  return isConfirmed ? "confirmed" : "silent";
}

/** True if the vote of `askEach` is `confirmed`. */
export async function isConfirmed(...asked: Parameters<typeof askEach>): Promise<boolean> {
  return (await askEach(...asked)) === "confirmed";
}

function ignoreFault(error: unknown): undefined {
  if (!(error instanceof RpcError || error instanceof z.ZodError)) throw error;
}
