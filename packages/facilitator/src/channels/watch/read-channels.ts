import { RpcError, type RpcRequester, RpcResponseError } from "@coinslot/chain";
import { type Address, channelSettlementAbi, type Hex } from "@coinslot/protocol";
import { BaseError, decodeFunctionResult, parseAbi, toFunctionSelector } from "viem";
import * as z from "zod";
import type { ChannelReading } from "../../ledger/channels/channel-state.ts";
import type { BatchCall } from "../../schemes/scheme.ts";
import { encodeBatch } from "../../settle/batch-calldata.ts";
import type { SettlementNetwork } from "../../settle/context.ts";

const abi = channelSettlementAbi;
const aggregateAbi = parseAbi([
  "function aggregate3((address target, bool allowFailure, bytes callData)[] calls) returns ((bool success, bytes returnData)[])",
]);
const selectors = ["channels", "pendingWithdrawals", "refundNonce"].map((name) =>
  toFunctionSelector(`${name}(bytes32)`),
);
const hexSchema = z.templateLiteral(["0x", z.string().regex(/^(?:[0-9a-fA-F]{2})*$/)]);

/** Channels in one `eth_call`. */
export const channelsAtOnce = 100;

/** A block by its identity. */
export interface BlockId {
  number: number;
  hash: Hex;
}

type Node = Pick<SettlementNetwork, "multicall3"> & { rpc: RpcRequester };

/** A node returned other than a channel's state. */
export class ChannelReadError extends RpcError {
  override readonly name = "ChannelReadError";
  readonly retryable = true;
}

/**
 * Reads channels at one block, by its hash: no other block's state is mixed in.
 *
 * @throws RpcError, ZodError, ChannelReadError where a node does not return all of them
 */
export async function readChannels(
  node: Node,
  { contract, ids, block }: { contract: Address; ids: readonly Hex[]; block: BlockId },
): Promise<Map<Hex, ChannelReading>> {
  const readings = new Map<Hex, ChannelReading>();
  for (let from = 0; from < ids.length; from += channelsAtOnce) {
    const part = ids.slice(from, from + channelsAtOnce);
    const calls = part.flatMap((id) => callsOf(contract, id));
    const results = await callAll(node, calls, block);
    for (const [index, id] of part.entries()) {
      const [channel, pending, nonce] = results.slice(3 * index, 3 * index + 3);
      if (channel === undefined || pending === undefined || nonce === undefined) {
        throw new ChannelReadError("A node returned too few results");
      }
      readings.set(id, { ...readable(() => decode({ channel, pending, nonce })), block });
    }
  }
  return readings;
}

/** Encoded by hand: an audit reads each channel with unclaimed money. */
function callsOf(target: Address, id: Hex): BatchCall[] {
  return selectors.map((selector) => ({ target, callData: `${selector}${id.slice(2)}` }));
}

function decode({ channel, pending, nonce }: Record<"channel" | "pending" | "nonce", Hex>) {
  const [balance, totalClaimed] = decodeFunctionResult({
    abi,
    functionName: "channels",
    data: channel,
  });
  const [amount, initiatedAt] = decodeFunctionResult({
    abi,
    functionName: "pendingWithdrawals",
    data: pending,
  });
  const refundNonce = decodeFunctionResult({ abi, functionName: "refundNonce", data: nonce });
  if (totalClaimed > balance) throw new ChannelReadError("A node returned an impossible state");
  const withdrawal = initiatedAt === 0 ? undefined : { amount, initiatedAt };
  return { balance, totalClaimed, withdrawal, refundNonce };
}

/**
 * Decodes data of a node.
 *
 * @throws ChannelReadError where it has another form
 */
export function readable<T>(decode: () => T): T {
  try {
    return decode();
  } catch (cause) {
    if (!(cause instanceof BaseError)) throw cause;
    throw new ChannelReadError("A node returned malformed data", { cause });
  }
}

/** Results of all calls at one block. One that fails fails all. */
async function callAll(
  { rpc, multicall3 }: Node,
  calls: readonly BatchCall[],
  block: BlockId,
): Promise<readonly Hex[]> {
  const at = { blockHash: block.hash };
  const minBlock = BigInt(block.number);
  if (multicall3 === undefined) {
    const outcomes = await rpc.requestMany(
      calls.map(({ target, callData }) => ({
        method: "eth_call",
        params: [{ to: target, data: callData }, at],
      })),
      { minBlock },
    );
    return outcomes.map((outcome) => {
      if (!outcome.ok) throw outcome.error;
      return hexSchema.parse(outcome.result);
    });
  }
  const call = { to: multicall3, data: encodeBatch(calls) };
  const answer = hexSchema.parse(
    await rpc.request({ method: "eth_call", params: [call, at] }, { minBlock }),
  );
  const functionName = "aggregate3";
  const results = readable(() =>
    decodeFunctionResult({ abi: aggregateAbi, functionName, data: answer }),
  );
  return results.map(({ success, returnData }) => {
    if (!success) throw new ChannelReadError("The escrow contract does not answer");
    return returnData;
  });
}

/** True where a node lacks the state of a block: it keeps too few, or does not have it yet. */
export function isStateMissing(error: unknown): boolean {
  return error instanceof RpcResponseError || error instanceof ChannelReadError;
}
