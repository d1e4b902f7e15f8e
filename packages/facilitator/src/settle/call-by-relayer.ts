import type { NetworkSettlement } from "./engine.ts";
import type { CallOutcome, OwnCall } from "./plan/send-calls.ts";

/**
 * Sends a transaction of ours with the next plan.
 *
 * @throws RpcError, DatabaseError: whether it was stored is then unknown
 */
export function callByRelayer(
  settlement: Pick<NetworkSettlement, "calls" | "planning" | "isStopped">,
  call: OwnCall,
): Promise<CallOutcome> {
  if (settlement.isStopped) return Promise.resolve("no_relayer");
  return new Promise((end, fail) => {
    settlement.calls.push({ call, end, fail });
    settlement.planning.trigger();
  });
}
