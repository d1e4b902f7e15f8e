import type { Address, Network } from "@coinslot/protocol";
import type { ClaimSigner } from "../channel-settings.ts";

/** Settings of channels that are served to callers, with every default filled in. */
export interface HostedChannelSettings {
  /** The escrow contract. In lower case. */
  contract: Address;
  networks: ReadonlySet<Network>;
  /** The receivers of each caller, in lower case. */
  receivers: ReadonlyMap<string, ReadonlySet<Address>>;
  /** Signs claims and refunds that come without a signature; `undefined`: sellers sign. */
  signer: ClaimSigner | undefined;
  /** Gas of one caller in an hour, on each network. */
  gasPerHour: bigint;
}
