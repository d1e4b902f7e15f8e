import { isRevert, type RpcCall, type RpcResponseError } from "@coinslot/chain";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import { isAwaited, noteAnswer, type Subjects } from "./silences.ts";
import { withoutLagging } from "./without-lagging.ts";

/** A network of one context. */
interface Electorate {
  context: Pick<SettlementContext, "clock" | "logger">;
  network: Pick<SettlementNetwork, "network"> & {
    rpc: Pick<SettlementNetwork["rpc"], "endpoints" | "request" | "status">;
  };
}

/**
 * Tries a call, and believes no revert of one node alone: each other endpoint that does not lag is
 * asked, too. One that does not answer is awaited, for ten minutes at most.
 *
 * @param subjects of the question, for endpoints that are silent about it
 * @returns `passes`: at one endpoint at least. `awaited`: it reverts, and an endpoint that has a
 * say has not answered. Else the revert
 * @throws RpcError when there is no node to ask
 */
export async function tryAtEach(
  { context, network }: Electorate,
  call: RpcCall,
  subjects: Subjects,
): Promise<"passes" | "awaited" | RpcResponseError> {
  let revert: RpcResponseError;
  try {
    await network.rpc.request(call);
    return "passes";
  } catch (error) {
    if (!(error instanceof Error && isRevert(error))) throw error;
    revert = error;
  }
  const answers = await Promise.all(
    withoutLagging(network.rpc).map(async (endpoint) => {
      try {
        if (endpoint.endpoint === revert.endpoint) throw revert;
        await endpoint.request(call);
        noteAnswer(endpoint, subjects);
        return "passes";
      } catch (error) {
        if (!(error instanceof Error && isRevert(error))) {
          return isAwaited(context, { network, endpoint, subjects, error }) ? "awaited" : undefined;
        }
        noteAnswer(endpoint, subjects);
        return "reverts";
      }
    }),
  );
  if (answers.includes("passes")) return "passes";
  return answers.includes("awaited") ? "awaited" : revert;
}
