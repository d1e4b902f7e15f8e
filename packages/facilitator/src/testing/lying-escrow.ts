import { channelContracts, channelSettlementAbi, type Hex } from "@coinslot/protocol";
import {
  decodeFunctionData,
  decodeFunctionResult,
  encodeFunctionResult,
  isHex,
  multicall3Abi,
} from "viem";
import * as z from "zod";
import type { NodeAnswer, NodeCall } from "./node-proxy.ts";

/** A channel as a node shows it. */
export interface ShownChannel {
  balance: bigint;
  totalClaimed: bigint;
  refundNonce: bigint;
  /** `undefined`: none. */
  withdrawal: { amount: bigint; initiatedAt: number } | undefined;
}

/** Members that a node shows in place of the chain's. */
export type ChannelLie = (Partial<ShownChannel> & LieBounds) | undefined;

interface LieBounds {
  /** Channels that it lies about. Default: each one. */
  ids?: readonly Hex[];
  /** Returned for each call about them. */
  data?: Hex;
}

const abi = channelSettlementAbi;
const callSchema = z.object({ to: z.string(), data: z.string() });

/** The answer of a node that lies about each channel, alone or in a multicall. */
export async function lieAboutChannels(
  { method, params }: NodeCall,
  ask: () => Promise<NodeAnswer>,
  lie: ChannelLie,
): Promise<NodeAnswer> {
  const call = callSchema.safeParse(params[0]).data;
  const answer = await ask();
  if (method !== "eth_call" || call === undefined || lie === undefined) return answer;
  if (!isHex(call.data) || !("result" in answer) || !isHex(answer.result)) return answer;
  if (call.to.toLowerCase() === channelContracts.settlement.toLowerCase()) {
    return { result: change(call.data, answer.result, lie) };
  }
  if (!call.data.startsWith("0x82ad56cb")) return answer;
  const { args } = decodeFunctionData({ abi: multicall3Abi, data: call.data });
  const calls = z.tuple([z.array(z.object({ callData: z.custom<Hex>(isHex) }))]).parse(args)[0];
  const functionName = "aggregate3";
  const results = decodeFunctionResult({ abi: multicall3Abi, functionName, data: answer.result });
  const result = results.map(({ success, returnData }, index) => ({
    success,
    returnData: change(calls[index]?.callData ?? "0x", returnData, lie),
  }));
  return { result: encodeFunctionResult({ abi: multicall3Abi, functionName, result }) };
}

function change(call: Hex, data: Hex, lie: Partial<ShownChannel> & LieBounds): Hex {
  if (lie.ids?.every((id) => !call.includes(id.slice(2)))) return data;
  if (lie.data !== undefined) return lie.data;
  const name = nameOf(call);
  if (name === "channels") {
    const [balance, claimed] = decodeFunctionResult({ abi, functionName: name, data });
    const result = [lie.balance ?? balance, lie.totalClaimed ?? claimed] as const;
    return encodeFunctionResult({ abi, functionName: name, result });
  }
  if (name === "refundNonce" && lie.refundNonce !== undefined) {
    return encodeFunctionResult({ abi, functionName: name, result: lie.refundNonce });
  }
  if (name === "pendingWithdrawals" && "withdrawal" in lie) {
    const { amount, initiatedAt } = lie.withdrawal ?? { amount: 0n, initiatedAt: 0 };
    return encodeFunctionResult({ abi, functionName: name, result: [amount, initiatedAt] });
  }
  return data;
}

function nameOf(data: Hex): string | undefined {
  try {
    return decodeFunctionData({ abi, data }).functionName;
  } catch {
    return undefined;
  }
}
