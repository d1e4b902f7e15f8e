import {
  type Challenge,
  challengeNonce,
  type ExactEvmPayload,
  encodeCredential,
  encodePaymentPayload,
  formatSource,
  type Hex,
  headerName,
  type OfferedRequirements,
  type PaymentRequirements,
  type ResourceInfo,
  writeAuthorizationPayload,
} from "@coinslot/protocol";
import { getAddress } from "viem";

/** The protocols that an offer may speak. */
export const wireNames = ["x402 v1", "x402 v2", "MPP"] as const;
export type WireName = (typeof wireNames)[number];

/** One way to pay that an offer names, and the form of its payment. */
export interface Way {
  wire: WireName;
  requirements: PaymentRequirements;
  /** Members that a challenge binds; the other protocols leave both to the buyer. */
  bound: { nonce: Hex; validBefore: number; challenge: Challenge } | undefined;
  /** The headers of a payment. */
  present(paid: ExactEvmPayload): (readonly [name: string, value: string])[];
}

/** A way of an x402 offer. */
export function toWay(offered: OfferedRequirements, resource: ResourceInfo | undefined): Way {
  const { requirements } = offered;
  if (offered.x402Version === 1) {
    const { scheme } = requirements;
    const network = offered.networkName;
    return {
      wire: "x402 v1",
      requirements,
      bound: undefined,
      present: (payload) => [
        [headerName.payment, encodePaymentPayload({ x402Version: 1, scheme, network, payload })],
      ],
    };
  }
  const { accepted } = offered;
  return {
    wire: "x402 v2",
    requirements,
    bound: undefined,
    present: (payload) => [
      [
        headerName.paymentSignature,
        encodePaymentPayload({ x402Version: 2, payload, accepted, resource }),
      ],
    ],
  };
}

/** A way of an MPP challenge. */
export function toChallengedWay(
  challenge: Challenge,
  { requirements, expires }: { requirements: PaymentRequirements; expires: number },
): Way {
  const asked = challenge.header?.toLowerCase() ?? "";
  const isApart = asked === headerName.paymentAuthorization.toLowerCase();
  const name = isApart ? headerName.paymentAuthorization : headerName.authorization;
  return {
    wire: "MPP",
    requirements,
    bound: { nonce: challengeNonce(challenge), validBefore: expires, challenge },
    present(paid) {
      // mppx compares the text, with the checksum of EIP-55.
      const source = formatSource(requirements.network, getAddress(paid.authorization.from));
      const payload = writeAuthorizationPayload(paid);
      return [[name, encodeCredential({ challenge, payload, source })]];
    },
  };
}
