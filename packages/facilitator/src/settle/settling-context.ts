import type { Network } from "@coinslot/protocol";
import type { Verifier } from "../verify/verifier.ts";
import type { SettlementContext } from "./context.ts";
import type { NetworkSettlement } from "./engine.ts";

/** What the way of a payment from `settle` to its outcome needs. */
export interface SettlingContext {
  context: SettlementContext;
  verifier: Pick<Verifier, "verify">;
  /** The engine of each network that is served. */
  settlements: ReadonlyMap<Network, NetworkSettlement>;
  /** How long to wait for an outcome until the answer is "pending". */
  timeoutMs: number;
  /** A larger answer is not kept: the payment settles, and can be resumed without it. */
  maxAnswerBytes: number;
}
