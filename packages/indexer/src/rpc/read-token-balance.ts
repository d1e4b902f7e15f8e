import {
  blockByNumber,
  endpointProblem,
  type RpcEndpointHandle,
  type RpcPool,
} from "@coinslot/chain";
import type { Address } from "viem";
import * as z from "zod";
import type { BlockId } from "../store/block-id.ts";
import { headerOf } from "./block-header.ts";
import { toQuantity } from "./get-logs.ts";

/** `keccak256("balanceOf(address)")`, its first four bytes: EIP-20. */
const balanceOf = "0x70a08231";
const wordSchema = z
  .string()
  .regex(/^0x[0-9a-f]{64}$/i)
  .transform((word) => BigInt(word));

interface TokenBalanceQuestion {
  token: Address;
  address: Address;
  block: { number: number; hash: string | undefined };
  /** An indexed block that the answering endpoint must have. */
  anchor: BlockId;
}

/**
 * The token's own answer for an address's balance at the end of a block. The block is named by its
 * hash where it may still be replaced (EIP-1898), else by its number. An endpoint on a fork would
 * answer for its own block of that number. So it is asked for the anchor in the same request. No
 * vote is needed for that: it holds in a process that only serves, and after a restart.
 *
 * Throws the node's error, also if it does not keep the state of that block.
 */
export async function readTokenBalance(
  pool: Pick<RpcPool, "onEndpoint">,
  question: TokenBalanceQuestion,
): Promise<bigint> {
  return pool.onEndpoint((endpoint) => readAt(endpoint, question));
}

/**
 * The same by each endpoint that returns it. What is kept for good is not one endpoint's word.
 *
 * Throws the first one's error, where none returns it.
 */
export async function readTokenBalances(
  { endpoints }: Pick<RpcPool, "endpoints">,
  question: TokenBalanceQuestion,
): Promise<bigint[]> {
  const answers = await Promise.allSettled(endpoints.map((endpoint) => readAt(endpoint, question)));
  const found = answers.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const failed = answers.find((each) => each.status === "rejected");
  if (found.length === 0 && failed !== undefined) throw failed.reason;
  return found;
}

async function readAt(
  endpoint: RpcEndpointHandle,
  { token, address, block, anchor }: TokenBalanceQuestion,
): Promise<bigint> {
  const data = `${balanceOf}${address.slice(2).padStart(64, "0")}`;
  const at = block.hash === undefined ? toQuantity(block.number) : { blockHash: block.hash };
  const [anchored, balance] = await endpoint.requestMany([
    blockByNumber(BigInt(anchor.number)),
    { method: "eth_call", params: [{ to: token, data }, at] },
  ]);
  if (headerOf(endpoint, anchored, anchor.number).hash !== anchor.hash) {
    const details = `its block ${anchor.number} is another one`;
    throw endpointProblem(endpoint, { kind: "behind", details });
  }
  if (balance?.ok !== true) throw balance?.error;
  return wordSchema.parse(balance.result);
}
