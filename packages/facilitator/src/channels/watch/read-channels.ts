import {
  isRevert,
  RpcError,
  type RpcPool,
  type RpcRequester,
  RpcResponseError,
} from "@coinslot/chain";
import { type Address, channelSettlementAbi, type Hex } from "@coinslot/protocol";
import { BaseError, decodeFunctionResult, parseAbi, toFunctionSelector } from "viem";
import * as z from "zod";
import type { ChannelReading } from "../../ledger/channels/channel-state.ts";
import type { BatchCall } from "../../schemes/scheme.ts";
import { encodeBatch } from "../../settle/batch-calldata.ts";
import type { SettlementNetwork } from "../../settle/context.ts";
import { isNodesFault } from "../../settle/evidence/find-executions.ts";

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

/** A pool, or one endpoint. */
type Node = Pick<SettlementNetwork, "multicall3"> & {
  rpc: RpcRequester & Partial<Pick<RpcPool, "endpoints">>;
};

/** A node returned other than a channel's state. */
export class ChannelReadError extends RpcError {
  override readonly name = "ChannelReadError";
  readonly retryable = true;
}

interface Question {
  contract: Address;
  ids: readonly Hex[];
  block: BlockId;
}

/**
 * Reads channels at one block, by its hash: no other block's state is mixed in. One endpoint of a
 * pool may show a channel in an impossible state, or by malformed data. Then the others are asked.
 *
 * @throws RpcError, ZodError, ChannelReadError where a node does not return all of them
 */
export async function readChannels(
  node: Node,
  question: Question,
): Promise<Map<Hex, ChannelReading>> {
  const readings = new Map<Hex, ChannelReading>();
  let fault = await readInto(readings, node, question);
  let refusal: RpcResponseError | undefined;
  const { endpoints = [] } = node.rpc;
  // Without another one, there is no better answer.
  for (const rpc of endpoints.length > 1 ? endpoints : []) {
    if (fault === undefined) break;
    const ids = question.ids.filter((id) => !readings.has(id));
    try {
      fault = await readInto(readings, { ...node, rpc }, { ...question, ids });
    } catch (error) {
      if (!isNodesFault(error)) throw error;
      // The block's state may be missing: garbage of another endpoint must not hide that.
      if (error instanceof RpcResponseError) refusal ??= error;
    }
  }
  if (fault !== undefined) throw refusal ?? fault;
  return readings;
}

/**
 * Adds the channels that a node returns.
 *
 * @returns the fault of the first one that it does not
 * @throws RpcError where it does not answer, or lacks the block
 */
async function readInto(
  readings: Map<Hex, ChannelReading>,
  node: Node,
  { contract, ids, block }: Question,
): Promise<Error | undefined> {
  let fault: Error | undefined;
  for (let from = 0; from < ids.length; from += channelsAtOnce) {
    const part = ids.slice(from, from + channelsAtOnce);
    const calls = part.flatMap((id) => callsOf(contract, id));
    try {
      const results = await callAll(node, calls, block);
      for (const [index, id] of part.entries()) {
        const reading = decode(results.slice(3 * index, 3 * index + 3));
        if (reading instanceof Error) fault ??= reading;
        else readings.set(id, { ...reading, block });
      }
    } catch (error) {
      if (!isOfAnswer(error)) throw error;
      fault ??= error;
    }
  }
  return fault;
}

/** An answer that no true node gives. The pool takes it for one, and asks no other endpoint. */
function isOfAnswer(error: unknown): error is Error {
  if (error instanceof ChannelReadError || error instanceof z.ZodError) return true;
  return error instanceof Error && isRevert(error);
}

/** Encoded by hand: an audit reads each channel with unclaimed money. */
function callsOf(target: Address, id: Hex): BatchCall[] {
  return selectors.map((selector) => ({ target, callData: `${selector}${id.slice(2)}` }));
}

/** A channel by the results of its calls, or their fault. */
function decode(results: readonly Result[]): Omit<ChannelReading, "block"> | Error {
  const fault = results.find((result) => result instanceof Error);
  if (fault !== undefined) return fault;
  const [channel, pending, nonce] = results.filter((result) => typeof result === "string");
  if (channel === undefined || pending === undefined || nonce === undefined) {
    return new ChannelReadError("A node returned too few results");
  }
  try {
    return readable(() => decodeWords({ channel, pending, nonce }));
  } catch (error) {
    if (error instanceof ChannelReadError) return error;
    throw error;
  }
}

function decodeWords({ channel, pending, nonce }: Record<"channel" | "pending" | "nonce", Hex>) {
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

/** What a call has returned. */
type Result = Hex | Error;

/** Results of all calls at one block. */
async function callAll(
  { rpc, multicall3 }: Node,
  calls: readonly BatchCall[],
  block: BlockId,
): Promise<readonly Result[]> {
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
      if (outcome.ok) return parseHex(outcome.result);
      if (isOfAnswer(outcome.error)) return outcome.error;
      throw outcome.error;
    });
  }
  const call = { to: multicall3, data: encodeBatch(calls) };
  const answer = parseHex(
    await rpc.request({ method: "eth_call", params: [call, at] }, { minBlock }),
  );
  if (answer instanceof Error) throw answer;
  const functionName = "aggregate3";
  const results = readable(() =>
    decodeFunctionResult({ abi: aggregateAbi, functionName, data: answer }),
  );
  return results.map(({ success, returnData }) =>
    success ? returnData : new ChannelReadError("The escrow contract does not answer"),
  );
}

function parseHex(answer: unknown): Result {
  const { data, error } = hexSchema.safeParse(answer);
  return data ?? error ?? new ChannelReadError("A node returned malformed data");
}

/** True where a node lacks the state of a block: it keeps too few, or does not have it yet. */
export function isStateMissing(error: unknown): boolean {
  return error instanceof RpcResponseError || error instanceof ChannelReadError;
}
