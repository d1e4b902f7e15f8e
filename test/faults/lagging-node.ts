import * as z from "zod";
import type { RpcAnswer, RpcCall, RpcExchange } from "./rpc-exchange.ts";

/** Where the methods take a block, counted from 0. */
const blockParameter: Readonly<Record<string, number>> = {
  eth_getBlockByNumber: 0,
  eth_call: 1,
  eth_estimateGas: 1,
  eth_getBalance: 1,
  eth_getCode: 1,
  eth_getTransactionCount: 1,
};
const headSchema = z.looseObject({ result: z.string().regex(/^0x[0-9a-f]+$/i) });
const placedSchema = z.looseObject({ blockNumber: z.string().regex(/^0x[0-9a-f]+$/i) });
const filterSchema = z.looseObject({ toBlock: z.string().optional() });

/**
 * A node that is `lag` blocks behind: its head, state, blocks, logs, and receipts. It accepts
 * transactions, as such nodes do.
 */
export async function answerLagging(exchange: RpcExchange, lag: number): Promise<RpcAnswer[]> {
  const [template] = exchange.calls;
  if (template === undefined) return exchange.forward();
  const height = await readHeight(exchange, template);
  const seen = height > BigInt(lag) ? height - BigInt(lag) : 0n;
  const changed = exchange.calls.map((call) => lookBack(call, seen));
  const answers = await exchange.forward(changed);
  return answers.map((answer) => {
    const call = exchange.calls.find(({ id }) => id === answer.id);
    return call === undefined ? answer : forget(call, answer, seen);
  });
}

async function readHeight(exchange: RpcExchange, template: RpcCall): Promise<bigint> {
  const ask = exchange.calls.map(() => ({ ...template, method: "eth_blockNumber", params: [] }));
  const [head] = await exchange.forward(ask);
  return BigInt(headSchema.parse(head).result);
}

function lookBack(call: RpcCall, seen: bigint): RpcCall {
  const index = blockParameter[call.method];
  if (index !== undefined && call.params[index] === "latest") {
    return { ...call, params: call.params.with(index, `0x${seen.toString(16)}`) };
  }
  if (call.method !== "eth_getLogs") return call;
  const filter = filterSchema.safeParse(call.params[0]);
  if (!filter.success) return call;
  const { toBlock = "latest" } = filter.data;
  const isBeyond = !toBlock.startsWith("0x") || BigInt(toBlock) > seen;
  if (!isBeyond) return call;
  return { ...call, params: [{ ...filter.data, toBlock: `0x${seen.toString(16)}` }] };
}

function forget(call: RpcCall, answer: RpcAnswer, seen: bigint): RpcAnswer {
  if (call.method === "eth_blockNumber") return { ...answer, result: `0x${seen.toString(16)}` };
  const [asked] = call.params;
  if (call.method === "eth_getBlockByNumber" && isAbove(asked, seen)) {
    return { ...answer, result: null };
  }
  const placed = placedSchema.safeParse(answer.result);
  const isYoung = placed.success && isAbove(placed.data.blockNumber, seen);
  return isYoung ? { ...answer, result: null } : answer;
}

function isAbove(block: unknown, seen: bigint): boolean {
  return typeof block === "string" && /^0x[0-9a-f]+$/i.test(block) && BigInt(block) > seen;
}
