import type { Devnet } from "@coinslot/devnet";
import { type Authorization, eip3009Abi, type Hex } from "@coinslot/protocol";
import { parseSignature } from "viem";
import type { PaidRequest } from "./seller.ts";

/**
 * Moves the tokens as a seller would, and waits until they have moved; resolves to the transaction
 * hash.
 */
export function executePayment(
  devnet: Devnet,
  { authorization, payload }: PaidRequest,
): Promise<Hex> {
  return executeAuthorization(devnet, { authorization, signature: payload.payload.signature });
}

/** The same, for a signed authorization. */
export async function executeAuthorization(
  { client, token }: Devnet,
  { authorization, signature }: { authorization: Authorization; signature: Hex },
): Promise<Hex> {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const { r, s, yParity } = parseSignature(signature);
  const hash = await client.writeContract({
    address: token,
    abi: eip3009Abi,
    functionName: "transferWithAuthorization",
    args: [from, to, value, validAfter, validBefore, nonce, 27 + yParity, r, s],
  });
  await client.waitForTransactionReceipt({ hash });
  return hash;
}
