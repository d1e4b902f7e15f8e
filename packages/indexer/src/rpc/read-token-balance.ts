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
 * What the token itself says an address has at the end of a block: by the block's hash where it may still be replaced
 * (EIP-1898), else by its number. Throws what the node says, if it does not keep the state of that block, too.
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
