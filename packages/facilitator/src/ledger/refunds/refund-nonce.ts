import { type AuthorizationId, type Hex, keccak256 } from "@coinslot/protocol";
import { hexWord, uintWord } from "../../evm/word.ts";

const tag = keccak256(Buffer.from("coinslot refund 1"));

/**
 * The EIP-3009 nonce of the n-th refund of a payment: keccak256 over six words. First come the
 * hashes of the tag `coinslot refund 1` and of the CAIP-2 network. Then the payment's authority,
 * payer and nonce, and `n` from 1.
 *
 * Nothing else decides it. So each process, an offline signer and a restored backup sign the same
 * one. The token executes one of them for one account.
 */
export function refundNonce(payment: AuthorizationId, n: number): Hex {
  const { network, asset, authority = asset, payer, nonce } = payment;
  const words =
    Buffer.from(tag).toString("hex") +
    Buffer.from(keccak256(Buffer.from(network))).toString("hex") +
    hexWord(authority) +
    hexWord(payer) +
    hexWord(nonce) +
    uintWord(BigInt(n));
  return `0x${Buffer.from(keccak256(Buffer.from(words, "hex"))).toString("hex")}`;
}
