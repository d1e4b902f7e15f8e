import type { Network } from "@coinslot/protocol";
import type { StopBoard } from "../stops/stop-board.ts";
import type { Verifier } from "../verify/verifier.ts";
import type { SettlementContext } from "./context.ts";
import type { NetworkSettlement } from "./engine.ts";

/** Dependencies of a payment's way from `settle` to its outcome. */
export interface SettlingContext {
  context: SettlementContext;
  verifier: Pick<Verifier, "verify" | "prove">;
  /** The engine of each network that is served. */
  settlements: ReadonlyMap<Network, NetworkSettlement>;
  stops: Pick<StopBoard, "refusalOf">;
  /** Wait for a payment's outcome before the answer is "pending". */
  timeoutMs: (network: Network | undefined, payment: { value: bigint }) => number;
  /** A larger answer is not kept: the payment settles, and can be resumed without it. */
  maxAnswerBytes: number;
}
