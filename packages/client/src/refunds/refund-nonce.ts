import type { Address, Hex } from "@coinslot/protocol";
import { encodeAbiParameters, keccak256, stringToBytes } from "viem";

const tag = keccak256(stringToBytes("coinslot refund 1"));
const words = ["bytes32", "bytes32", "address", "address", "bytes32", "uint256"].map((type) => ({
  type,
}));

/**
 * The EIP-3009 nonce of the n-th refund of a payment: keccak256 over six words. The first two are
 * the hashes of the tag `coinslot refund 1` and of the CAIP-2 network. Then come token, payer and
 * nonce of the payment, and `n` from 1. A seller's ledger derives the same one.
 */
export function refundNonce(
  payment: { network: string; asset: Address; payer: Address; nonce: Hex },
  n: number,
): Hex {
  const { network, asset, payer, nonce } = payment;
  const values = [tag, keccak256(stringToBytes(network)), asset, payer, nonce, BigInt(n)];
  return keccak256(encodeAbiParameters(words, values));
}
