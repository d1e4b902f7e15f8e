import { channelScheme, type Network, type ReservingFacilitator } from "@coinslot/protocol";
import type { FacilitatorConfiguration } from "./configuration/facilitator-configuration.ts";

type Supported = Awaited<ReturnType<ReservingFacilitator["getSupported"]>>;

/** Kinds that a facilitator serves: `/supported`. */
export function listSupported(configuration: FacilitatorConfiguration): Supported {
  const { networks } = configuration;
  return {
    kinds: networks.flatMap(({ network }) => [
      ...[1, 2].map((x402Version) => ({ x402Version, scheme: "exact", network })),
      ...channelsFor(configuration, network),
    ]),
    extensions: [],
    signers: Object.fromEntries(
      networks.map(({ network, relayers }) => [network, relayers.map(({ address }) => address)]),
    ),
  };
}

/**
 * Channels that callers may use; those that this process sells by are its own matter. The key is
 * that of claims and refunds, where this facilitator signs them.
 */
function channelsFor(
  { hostedChannels }: FacilitatorConfiguration,
  network: Network,
): Supported["kinds"] {
  if (!hostedChannels?.networks.has(network)) return [];
  const { signer } = hostedChannels;
  const extra = signer && { receiverAuthorizer: signer.address };
  return [{ x402Version: 2, scheme: channelScheme, network, ...(extra ? { extra } : {}) }];
}
