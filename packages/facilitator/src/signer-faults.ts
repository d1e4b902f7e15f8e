import type { Address, Network } from "@coinslot/protocol";
import type { FacilitatorConfiguration } from "./configuration/facilitator-configuration.ts";
import type { SignerErrorKind } from "./settle/relay/relayer-signer.ts";

/** A relayer whose signer did not sign: `timeout`, `failed` or `wrong`. */
export interface RestingRelayer {
  network: Network;
  relayer: Address;
  kind: SignerErrorKind;
  /** Milliseconds until its signer is asked again. */
  restsForMs: number;
}

/** The relayers that rest at the moment. */
export function listSignerFaults({ networks }: FacilitatorConfiguration): RestingRelayer[] {
  return networks.flatMap(({ network, relayers, retiring }) =>
    [...relayers, ...retiring].flatMap((signer) => {
      const fault = signer.fault?.();
      if (fault === undefined) return [];
      const { error, restsForMs } = fault;
      return [{ network, relayer: signer.address, kind: error.kind, restsForMs }];
    }),
  );
}
