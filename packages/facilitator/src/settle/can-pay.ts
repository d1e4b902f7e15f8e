import type { Network } from "@coinslot/protocol";
import type { NetworkSettlement } from "./engine.ts";

/** True if a relayer of the network has gas money, so that payments may be accepted. */
export function canPay(
  settlements: ReadonlyMap<Network, NetworkSettlement>,
  network: Network,
): boolean {
  return settlements.get(network)?.funds.suffice() ?? true;
}
