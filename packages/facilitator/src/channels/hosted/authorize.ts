import type { Address, Hex } from "@coinslot/protocol";
import { hexToBytes } from "viem";
import { splitSignature } from "../../evm/split-signature.ts";
import type { HostedContext } from "./hosted-context.ts";

/**
 * The right to sign for a channel's receiver: the caller's signature, or the key of this
 * facilitator.
 */
export type Authorized =
  | { sign: (digest: Hex) => Promise<Hex> }
  | { signature: Hex }
  | { reason: AuthorizerReason };

type AuthorizerReason =
  | "invalid_batch_settlement_evm_authorizer_address_mismatch"
  | "invalid_batch_settlement_evm_authorizer_not_configured";

const mismatch = { reason: "invalid_batch_settlement_evm_authorizer_address_mismatch" } as const;

/**
 * Decides who signs. A signature of the caller's is recovered here, so that no node sees it before
 * it is on the disk. So a `receiverAuthorizer` with code is refused: its code alone could tell.
 */
export function authorize(
  { settings: { signer }, recoverSigner }: HostedContext,
  {
    receiverAuthorizer,
    signature,
    digest,
  }: { receiverAuthorizer: Address; signature: Hex | undefined; digest: Hex },
): Authorized {
  if (signature !== undefined) {
    const key = signature.length === 132 ? splitSignature(signature) : undefined;
    const recovered = key && recoverSigner(hexToBytes(digest), key);
    return recovered === receiverAuthorizer ? { signature } : mismatch;
  }
  if (signer === undefined) {
    return { reason: "invalid_batch_settlement_evm_authorizer_not_configured" };
  }
  return signer.address === receiverAuthorizer ? { sign: signer.sign } : mismatch;
}

/**
 * The signature of a digest.
 *
 * @throws SignerError where the key is elsewhere, and does not sign
 */
export async function signBy(
  authorized: Exclude<Authorized, { reason: AuthorizerReason }>,
  digest: Hex,
): Promise<Hex> {
  return "signature" in authorized ? authorized.signature : authorized.sign(digest);
}
