import { type AnySupported, type FacilitatorRequest, parseNetwork } from "@coinslot/protocol";

/** A facilitator's names of each network in version 1. */
export interface NetworkNames {
  /** Learns the names from an answer of `/supported`. */
  learn(supported: AnySupported): void;
  /** The name to write in a request; `undefined` where the facilitator listed none. */
  nameIn(request: FacilitatorRequest): string | undefined;
}

/** Creates a record of names. A payment keeps its own name of the network, if that is one. */
export function createNetworkNames(): NetworkNames {
  const namesOf = new Map<string, Set<string>>();
  return {
    learn({ kinds }) {
      for (const { x402Version, network } of kinds) {
        if (x402Version !== 1) continue;
        const id = parseNetwork(network) ?? network;
        namesOf.set(id, (namesOf.get(id) ?? new Set()).add(network));
      }
    },
    nameIn({ paymentPayload, paymentRequirements }) {
      const names = namesOf.get(paymentRequirements.network);
      const isKnown = paymentPayload.x402Version === 1 && names?.has(paymentPayload.network);
      return isKnown ? paymentPayload.network : names?.values().next().value;
    },
  };
}
