import {
  type Authorization,
  type ExactEvmPayload,
  formatAuthorization,
  type Hex,
  isSameAddress,
  isWellFormedAddress,
  networkOf,
  toLowerHex,
  transferTypedData,
  transferWithAuthorizationTypes,
} from "@coinslot/protocol";
import { bytesToHex, type LocalAccount } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { writeSignatureForm } from "../checks/signature-form.ts";
import type { Leg, OfferedWay, ShownPayment } from "../cycles/cycle.ts";
import { ReplayRefusedError } from "./local-chain.ts";

/**
 * Signs a recorded payment anew: where it agreed with its offer, by the new offer; where it
 * differed, with the same difference. The key is made for this signature, and holds nothing
 * elsewhere.
 */
export async function signAnew(options: {
  leg: Leg;
  payment: ShownPayment;
  way: OfferedWay;
  payer: LocalAccount;
  /** Members that a challenge binds. */
  nonce: Hex | undefined;
  /** Unix milliseconds. */
  now: number;
}): Promise<ExactEvmPayload> {
  const { payment, way, payer } = options;
  const { authorization: recorded, signedUnder } = payment;
  if (recorded === undefined)
    throw new ReplayRefusedError("The recorded payment has no authorization.");
  const compared = payment.comparisons.find(({ check }) => check === "signer");
  if (signedUnder === undefined && compared?.verdict === "unknown") throw unknownSigner();
  const authorization = shift(recorded, options);
  // A signature that fitted nothing is replayed as another key's.
  const signer = signedUnder === undefined ? privateKeyToAccount(generatePrivateKey()) : payer;
  const was = payment.way;
  const like = <Value>(then: Value, offered: Value | undefined, now: Value | undefined): Value =>
    (then === offered ? now : undefined) ?? then;
  const domain = {
    name: like(signedUnder?.name ?? "", was?.domain?.name, way.domain?.name),
    version: like(signedUnder?.version ?? "", was?.domain?.version, way.domain?.version),
  };
  const network =
    signedUnder === undefined || was?.network === networkOf(signedUnder.chainId)
      ? networkOf(Number(way.network.slice("eip155:".length)))
      : networkOf(signedUnder.chainId);
  const contract = signedUnder?.verifyingContract ?? way.asset;
  const asset = was !== undefined && isSameAddress(contract, was.asset) ? way.asset : contract;
  if (!isWellFormedAddress(asset))
    throw new ReplayRefusedError("The recorded token is no address.");
  const typed = transferTypedData({ authorization, network, asset, domain });
  const full =
    signedUnder?.primaryType === "ReceiveWithAuthorization"
      ? await signer.signTypedData({
          ...typed,
          types: {
            ReceiveWithAuthorization: transferWithAuthorizationTypes.TransferWithAuthorization,
          },
          primaryType: "ReceiveWithAuthorization",
        })
      : await signer.signTypedData(typed);
  const signature = writeSignatureForm(full, signedUnder?.form);
  return { signature, authorization: formatAuthorization(authorization) };
}

/** An account with code has signed, or the token's domain is in no offer and in no table. */
function unknownSigner(): ReplayRefusedError {
  return new ReplayRefusedError(
    "The recording does not say how the payment was signed: no key's signature under a known domain.",
  );
}

type Recorded = NonNullable<ShownPayment["authorization"]>;

/** The recorded authorization, moved to now and to another payer. */
function shift(
  recorded: Recorded,
  given: Pick<
    Parameters<typeof signAnew>[0],
    "leg" | "payment" | "way" | "payer" | "nonce" | "now"
  >,
): Authorization {
  const { leg, payment, way, payer, nonce, now } = given;
  const was = payment.way;
  const passed = BigInt(Math.floor((now - leg.startedAt) / 1000));
  const isOffered = was !== undefined && isSameAddress(recorded.to, was.payTo);
  const to = isOffered ? way.payTo : recorded.to;
  const value = recorded.value === was?.amount ? way.amount : recorded.value;
  const ends = Math.floor(Date.parse(way.challenge?.expires ?? "") / 1000);
  const ended = Math.floor(Date.parse(was?.challenge?.expires ?? "") / 1000);
  const until =
    Number(recorded.validBefore) === ended ? BigInt(ends) : BigInt(recorded.validBefore) + passed;
  const wasBound = payment.comparisons.some(
    ({ check, verdict }) => check === "nonce" && verdict === "same",
  );
  const fresh = bytesToHex(crypto.getRandomValues(new Uint8Array(32)));
  return {
    from: toLowerHex(payer.address),
    to: toLowerHex(`0x${to.slice(2)}`),
    value: BigInt(value),
    validAfter: recorded.validAfter === "0" ? 0n : BigInt(recorded.validAfter) + passed,
    validBefore: until,
    nonce: wasBound && nonce !== undefined ? nonce : fresh,
  };
}
