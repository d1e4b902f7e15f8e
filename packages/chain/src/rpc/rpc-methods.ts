import * as z from "zod";
import type { JsonRpcError, RpcCall } from "./rpc-envelope.ts";

const reads =
  /^(eth_(get(?!Filter|Work)\w+|call|callMany|simulateV1|chainId|blockNumber|blobBaseFee|estimateGas|feeHistory|gasPrice|maxPriorityFeePerGas|createAccessList|syncing)|net_\w+|web3_\w+|debug_trace\w+|trace_\w+)$/;

/**
 * Returns whether a call may be sent again when it is not known if a node has seen it. Reads may.
 * So may `eth_sendRawTransaction`: the same signed bytes are the same transaction, which a chain
 * includes at most once. All other methods may not.
 */
export function isRepeatable(method: string): boolean {
  return reads.test(method) || method === "eth_sendRawTransaction";
}

const bytesMethods: ReadonlySet<string> = new Set(["eth_call", "eth_getCode"]);
const bytes = z.string().regex(/^0x(?:[0-9a-f]{2})*$/i);
const quantityMethods: ReadonlySet<string> = new Set([
  "eth_getBalance",
  "eth_gasPrice",
  "eth_maxPriorityFeePerGas",
  "eth_estimateGas",
]);
const anyQuantity = z.string().regex(/^0x[0-9a-f]{1,64}$/i);
/** Their callers read a JavaScript number: 13 hex digits are 52 bits. */
const countMethods: ReadonlySet<string> = new Set([
  "eth_getTransactionCount",
  "eth_blockNumber",
  "eth_chainId",
]);
const safeQuantity = z.string().regex(/^0x[0-9a-f]{1,13}$/i);

/**
 * Returns whether a node's result has the form of an answer to a call. That of a call with effects
 * always has: it must not be made twice.
 */
export function hasForm({ method, isAnswer }: RpcCall, result: unknown): boolean {
  if (!reads.test(method)) return true;
  if (isAnswer !== undefined) return isAnswer(result);
  if (bytesMethods.has(method)) return bytes.safeParse(result).success;
  if (countMethods.has(method)) return safeQuantity.safeParse(result).success;
  return !quantityMethods.has(method) || anyQuantity.safeParse(result).success;
}

const urgent = /^eth_(sendRawTransaction|getTransactionReceipt|getTransactionCount|chainId)$/;

/**
 * Returns whether a call goes before others where an endpoint's budget is short. Such a call ends
 * accepted payments, while others begin new ones.
 */
export function isUrgentMethod(method: string): boolean {
  return urgent.test(method);
}

const rateLimitText =
  /rate.?limit|too many requests|request count|(requests?|calls?) ?(per|\/) ?sec|compute units|throughput|capacity exceeded/i;

/**
 * Returns whether a JSON-RPC error is a rate limit and not an answer. Providers' own codes for it
 * are 429 and -32007. The code -32005 (EIP-1474, limit exceeded) means a rate limit too, but also a
 * log query with too many results. The latter is an answer, and only its text differs.
 */
export function isRateLimit(method: string, error: JsonRpcError): boolean {
  if (error.code === 429 || error.code === -32007) return true;
  if (error.code !== -32005) return false;
  return method !== "eth_getLogs" || rateLimitText.test(error.message);
}

const quantity = z.string().regex(/^0x[0-9a-f]{1,16}$/i);
const blockWithNumber = z.object({ number: quantity });

/** The endpoint's head, where the answer to a call contains it. */
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
