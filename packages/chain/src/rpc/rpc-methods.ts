import * as z from "zod";
import type { JsonRpcError, RpcCall } from "./rpc-envelope.ts";

const reads =
  /^(eth_(get(?!Filter|Work)\w+|call|callMany|simulateV1|chainId|blockNumber|blobBaseFee|estimateGas|feeHistory|gasPrice|maxPriorityFeePerGas|createAccessList|syncing)|net_\w+|web3_\w+|debug_trace\w+|trace_\w+)$/;

/**
 * Whether a call may be sent again when nobody knows if a node has seen it. Reads may. So may
 * `eth_sendRawTransaction`: the same signed bytes are the same transaction, which a chain includes
 * once however often it hears of them. Whatever else there is may not.
 */
export function isRepeatable(method: string): boolean {
  return reads.test(method) || method === "eth_sendRawTransaction";
}

const rateLimitText =
  /rate.?limit|too many requests|request count|(requests?|calls?) ?(per|\/) ?sec|compute units|throughput|capacity exceeded/i;

/**
 * Whether a JSON-RPC error means "not so fast" instead of answering the question: 429 and -32007 are
 * providers' own codes for it. -32005 (EIP-1474, limit exceeded) is used for it too, but also for a
 * log query with too many results; that one is an answer, and only its text tells them apart.
 */
export function isRateLimit(method: string, error: JsonRpcError): boolean {
  if (error.code === 429 || error.code === -32007) return true;
  if (error.code !== -32005) return false;
  return method !== "eth_getLogs" || rateLimitText.test(error.message);
}

const quantity = z.string().regex(/^0x[0-9a-f]{1,16}$/i);
const blockWithNumber = z.object({ number: quantity });

/** The endpoint's head, where the answer to a call tells it. */
export function reportedHead(call: RpcCall, result: unknown): bigint | undefined {
  if (call.method === "eth_blockNumber") {
    const parsed = quantity.safeParse(result);
    return parsed.success ? BigInt(parsed.data) : undefined;
  }
  if (call.method === "eth_getBlockByNumber" && call.params?.[0] === "latest") {
    const parsed = blockWithNumber.safeParse(result);
    return parsed.success ? BigInt(parsed.data.number) : undefined;
  }
  return undefined;
}

/** The chain id in an answer to `eth_chainId`. */
export function reportedChainId(result: unknown): number | undefined {
  const parsed = quantity.safeParse(result);
  return parsed.success ? Number(parsed.data) : undefined;
}
