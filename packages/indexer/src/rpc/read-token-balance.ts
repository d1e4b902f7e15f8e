import type { RpcRequester } from "@coinslot/chain";
import type { Address } from "viem";
import * as z from "zod";
import { toQuantity } from "./get-logs.ts";

/** `keccak256("balanceOf(address)")`, its first four bytes: EIP-20. */
const balanceOf = "0x70a08231";
const wordSchema = z
  .string()
  .regex(/^0x[0-9a-f]{64}$/i)
  .transform((word) => BigInt(word));

/**
 * The token's own answer for an address's balance at the end of a block. The block is named by its
 * hash where it may still be replaced (EIP-1898), else by its number. Throws the node's error, also
 * if it does not keep the state of that block.
 */
export async function readTokenBalance(
  rpc: RpcRequester,
  question: {
    token: Address;
    address: Address;
    block: { number: number; hash: string | undefined };
  },
): Promise<bigint> {
  const { token, address, block } = question;
  const data = `${balanceOf}${address.slice(2).padStart(64, "0")}`;
  const at = block.hash === undefined ? toQuantity(block.number) : { blockHash: block.hash };
  const answer = await rpc.request({ method: "eth_call", params: [{ to: token, data }, at] });
  return wordSchema.parse(answer);
}
