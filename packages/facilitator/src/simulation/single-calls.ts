import {
  blockByNumber,
  isRevert,
  parseBlockHeader,
  type RpcCall,
  RpcError,
  type RpcRequester,
} from "@coinslot/chain";
import { type Address, FacilitatorError, type Hex } from "@coinslot/protocol";
import * as z from "zod";
import { hexWord } from "../evm/word.ts";
import { schemeOf } from "../schemes/registry.ts";
import type { BatchCall, Claim } from "../schemes/scheme.ts";
import type { SimulationResult } from "../schemes/simulation-result.ts";
import { readRevertReason } from "./revert-reason.ts";

const balanceOfSelector = "0x70a08231";

/**
 * Tries transfers by one `eth_call` each, in JSON-RPC batches. Every node can do it. It is slower
 * than the simulator contract, and blind to the effects of the calls. `isExact` is `false` only
 * where there can be none. All of it is read at one block. Where the node does not answer a
 * question about a transfer, that is the result for this transfer alone.
 *
 * @throws RpcError when there is no node to ask, FacilitatorError when it returns malformed data.
 */
export async function simulateSingly(options: {
  rpc: RpcRequester;
  transfers: readonly Claim[];
  callGas: bigint;
  /**
   * The relayer. It offers no gas price: a node's refusal of that could not be distinguished from
   * one of the call.
   */
  from: Address | undefined;
}): Promise<(SimulationResult | RpcError)[]> {
  const { rpc, transfers, callGas, from } = options;
  const block = parseBlockHeader(await rpc.request(blockByNumber("latest")));
  if (block === undefined) throw badResponse();
  const at = { minBlock: block.number };
  const blockTag: Hex = `0x${block.number.toString(16)}`;

  const questions = transfers.flatMap((transfer) => questionsBefore(transfer, blockTag));
  const before = await rpc.requestMany(questions, at);
  const facts = transfers.map((transfer, index) =>
    orError(() => readFacts(transfer, before.slice(index * 4, index * 4 + 4))),
  );
  const calls = transfers.map((transfer, index) => {
    const found = facts[index];
    if (found === undefined || found instanceof RpcError) return undefined;
    const { payerHasCode } = found;
    return transferCall(transfer, { payerHasCode, callGas, blockTag, from });
  });
  const outcomes = await rpc.requestMany(
    calls.flatMap((call) => call ?? []),
    at,
  );
  const remaining = outcomes.values();
  return calls.flatMap((call, index): readonly (SimulationResult | RpcError)[] => {
    const answer = call && remaining.next().value;
    const found = facts[index];
    if (found === undefined) return [];
    if (found instanceof RpcError) return [found];
    const outcome = call === undefined ? unsigned : orError(() => readOutcome(answer));
    if (outcome instanceof RpcError) return [outcome];
    const { number: blockNumber, timestamp: blockTimestamp } = block;
    return [{ ...outcome, ...found, blockNumber, blockTimestamp }];
  });
}

/** A node's refusal as a value: it concerns one transfer, and not its neighbours. */
function orError<Value>(read: () => Value): Value | RpcError {
  try {
    return read();
  } catch (error) {
    if (error instanceof RpcError) return error;
    throw error;
  }
}

function readFacts(claim: Claim, answers: readonly RpcOutcome[]) {
  const [state, balanceOf, payerCode, assetCode] = answers;
  const used = wordOf(state);
  const balance = wordOf(balanceOf) ?? 0n;
  // A contract without authorizations may well answer the call, as an address without code answers
  // any.
  const cannotMove = used === undefined || balance < claim.authorization.value;
  return {
    isExact: cannotMove ? false : undefined,
    isUsed: used !== undefined && schemeOf(claim).isUsed(claim.id, used) !== false,
    balance,
    payerHasCode: codeOf(payerCode) !== "0x",
    assetHasCode: codeOf(assetCode) !== "0x",
  };
}

type Outcome = Pick<SimulationResult, "outcome" | "revertReason">;
type RpcOutcome = Awaited<ReturnType<RpcRequester["requestMany"]>>[number];

const unsigned: Outcome = {
  outcome: "reverted",
  revertReason: "the signature is not one of a key",
};

function questionsBefore(claim: Claim, blockTag: Hex): RpcCall[] {
  const { asset, payer } = claim.id;
  const call = ({ target, callData }: BatchCall): RpcCall => ({
    method: "eth_call",
    params: [{ to: target, data: callData }, blockTag],
  });
  const code = (address: Address): RpcCall => ({
    method: "eth_getCode",
    params: [address, blockTag],
  });
  return [
    call(schemeOf(claim).nonceStateCall(claim.id)),
    call({ target: asset, callData: `${balanceOfSelector}${hexWord(payer)}` }),
    code(payer),
    code(asset),
  ];
}

function transferCall(
  claim: Claim,
  options: {
    payerHasCode: boolean;
    callGas: bigint;
    blockTag: Hex;
    from: Address | undefined;
  },
): RpcCall | undefined {
  const { payerHasCode, callGas, blockTag, from } = options;
  const composed = schemeOf(claim).compose(claim, { payerHasCode });
  if (composed === undefined) return undefined;
  const { target: to, callData: data } = composed;
  // Intrinsic gas of a transaction, its calldata above all, comes on top.
  const gas = callGas + 21_000n + BigInt(data.length / 2) * 40n;
  const call = { to, data, gas: `0x${gas.toString(16)}`, ...(from && { from }) };
  return { method: "eth_call", params: [call, blockTag] };
}

const hexSchema = z.templateLiteral(["0x", z.string().regex(/^[0-9a-f]*$/i)]);

/** A word that a call returned; `undefined` where the token has no such function. */
function wordOf(outcome: RpcOutcome | undefined): bigint | undefined {
  if (outcome === undefined) throw badResponse();
  if (!outcome.ok) {
    if (isRevert(outcome.error)) return undefined;
    throw outcome.error;
  }
  const hex = hexSchema.safeParse(outcome.result);
  if (!hex.success) throw badResponse();
  return hex.data.length < 66 ? undefined : BigInt(hex.data.slice(0, 66));
}

function codeOf(outcome: RpcOutcome | undefined): string {
  if (outcome?.ok === false) throw outcome.error;
  const hex = hexSchema.safeParse(outcome?.result);
  if (!hex.success) throw badResponse();
  return hex.data;
}

function readOutcome(outcome: RpcOutcome | undefined): Outcome {
  if (outcome === undefined) throw badResponse();
  if (outcome.ok) return { outcome: "succeeded" };
  if (!isRevert(outcome.error)) throw outcome.error;
  const data = hexSchema.safeParse(outcome.error.data);
  return {
    outcome: "reverted",
    revertReason: data.success ? readRevertReason(data.data) : undefined,
  };
}

function badResponse(): FacilitatorError {
  return new FacilitatorError("The chain returned a malformed simulation", {
    kind: "bad_response",
  });
}
