import { FacilitatorError, type Hex } from "@coinslot/protocol";
import * as z from "zod";
import { simulator } from "../../contracts/simulator.generated.ts";
import { uintWord } from "../evm/word.ts";
import { schemeOf } from "../schemes/registry.ts";
import type { Claim } from "../schemes/scheme.ts";
import type { SimulationResult } from "../schemes/simulation-result.ts";
import { readRevertReason } from "./revert-reason.ts";

/** EIP-3860: the maximum size of init code. */
const maxInitCode = 49_152;
const initCodeOverhead = simulator.bytecode.length / 2 + 5 * 32;

/** Gas that a frame needs besides the token call: six reads of 30,000 gas, and its own work. */
const frameOverheadGas = 250_000n;
/** Creating the frame contract, and decoding. */
const baseGas = 1_500_000n;
/** As computed by the contract. */
const gasPerAnswer = 100_000n;
/** EIP-7623. */
const gasPerByte = 40n;

const answerHeadWords = 4;
const readingWords = 11;

/** The most transfers whose answer fits in 24,576 bytes (EIP-170: the limit of returned code). */
const maxAnswers = 64;
/** Gas that most nodes allow an `eth_call` by default. */
const usualGasCap = 50_000_000n;

/** Number of transfers that fit in one call, by the size of the answer and by gas. At least one. */
export function findMaxTransfers(callGas: bigint): number {
  const shared = baseGas + BigInt(maxInitCode) * gasPerByte;
  const byGas = Number((usualGasCap - shared) / gasOf(callGas));
  return Math.max(1, Math.min(maxAnswers, byGas));
}

/** Gas of a frame, and with it, the share of a call that one transfer takes. */
function frameGasOf(callGas: bigint): bigint {
  return callGas + callGas / 63n + frameOverheadGas;
}

function gasOf(callGas: bigint): bigint {
  const frameGas = frameGasOf(callGas);
  return frameGas + frameGas / 63n + gasPerAnswer;
}

/** Bytes of the init code that a transfer takes. */
export function sizeOf(claim: Claim): number {
  // A word for its offset, and itself.
  return 32 + schemeOf(claim).trialBytes(claim);
}

/** Bytes of the init code that all transfers of one call may take. */
export const roomForTransfers = maxInitCode - initCodeOverhead;

/** The call object of an `eth_call` that tries each transfer in a frame of its own. */
export function encodeDeploylessCall(
  claims: readonly Claim[],
  callGas: bigint,
): { data: Hex; gas: Hex } {
  const tuples = claims.map((claim) => schemeOf(claim).encodeTrial(claim));
  let offset = 32 * tuples.length;
  const offsets = tuples.map((tuple) => {
    const word = uintWord(offset);
    offset += tuple.length / 2;
    return word;
  });
  const words = [
    uintWord(3 * 32),
    uintWord(callGas),
    uintWord(frameGasOf(callGas)),
    uintWord(tuples.length),
    ...offsets,
    ...tuples,
  ];
  const data: Hex = `${simulator.bytecode}${words.join("")}`;
  const shared = baseGas + BigInt(data.length / 2) * gasPerByte;
  const gas = shared + BigInt(claims.length) * gasOf(callGas);
  return { data, gas: `0x${gas.toString(16)}` };
}

const answerSchema = z.string().regex(/^0x(?:[0-9a-f]{64})+$/i);
/** Some nodes take a call without a contract for one of the zero address, which answers nothing. */
export const noAnswer = "0x";

/** Whether a node has answered a call for `count` transfers, also by `noAnswer`. */
export function isDeploylessAnswer(answer: unknown, count: number): boolean {
  return answer === noAnswer || parseAnswer(answer, count) !== undefined;
}

function parseAnswer(answer: unknown, count: number): string | undefined {
  const { data } = answerSchema.safeParse(answer);
  const words = answerHeadWords + count * readingWords;
  return data?.length === 2 + words * 64 ? data : undefined;
}

/**
 * Reads the answer to a call for `count` transfers. It has a result for each, or for fewer where
 * the node granted less gas than requested. The last ones are left out.
 *
 * @throws FacilitatorError when the answer is not one of the simulator.
 */
export function decodeDeploylessAnswer(answer: unknown, count: number): SimulationResult[] {
  const hex = parseAnswer(answer, count);
  if (hex === undefined) {
    throw new FacilitatorError("The chain returned a malformed simulation", {
      kind: "bad_response",
    });
  }
  const word = (index: number): bigint => BigInt(`0x${hex.slice(2 + index * 64, 66 + index * 64)}`);
  const blockNumber = word(0);
  const blockTimestamp = word(1);
  const results: SimulationResult[] = [];
  for (let index = 0; index < count; index++) {
    const first = answerHeadWords + index * readingWords;
    const outcome = outcomes[Number(word(first))];
    if (outcome === undefined) break;
    const reasonStart = 2 + (first + 7) * 64;
    results.push({
      outcome,
      isExact: word(first + 1) === 1n,
      isUsed: word(first + 2) === 1n,
      balance: word(first + 3),
      payerHasCode: word(first + 4) > 0n,
      assetHasCode: word(first + 5) > 0n,
      gasUsed: word(first + 6),
      revertReason: readRevertReason(`0x${hex.slice(reasonStart, reasonStart + 4 * 64)}`),
      blockNumber,
      blockTimestamp,
    });
  }
  return results;
}

/** The contract's enum. */
const outcomes = [undefined, "succeeded", "reverted"] as const;
