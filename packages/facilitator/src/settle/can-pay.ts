import type { Network } from "@coinslot/protocol";
import type { NetworkSettlement } from "./engine.ts";
import type { Relayer } from "./relay/relayer-context.ts";

/**
 * True if payments may be accepted: a relayer of the network has gas money, and one's signer does
 * not rest.
 */
export function canPay(
  settlements: ReadonlyMap<Network, NetworkSettlement>,
  network: Network,
): boolean {
  const settlement = settlements.get(network);
  return (
    settlement === undefined || (settlement.funds.suffice() && settlement.relayers.some(mayAsk))
  );
}

function mayAsk({ signer }: Relayer): boolean {
  return signer?.fault?.() === undefined;
}
