import {
  BaseError,
  ContractFunctionRevertedError,
  ContractFunctionZeroDataError,
  decodeErrorResult,
  type Hex,
  isHex,
} from "viem";
import { findNodeAnswer } from "./node-answer.ts";
import { oftAbi } from "./oft-abi.ts";

/**
 * Revert data of a contract, if the error of a viem action means a revert. "0x": without a reason,
 * or there is no such contract or function.
 */
export function findRevertData(error: unknown): Hex | undefined {
  if (!(error instanceof BaseError)) return undefined;
  if (error.walk((each) => each instanceof ContractFunctionZeroDataError)) return "0x";
  const reverted = error.walk((each) => each instanceof ContractFunctionRevertedError);
  if (reverted instanceof ContractFunctionRevertedError) return reverted.raw ?? "0x";
  const answer = findNodeAnswer(error);
  if (answer === undefined) return undefined;
  if (isHex(answer.data)) return answer.data;
  return answer.code === 3 || /\brevert/i.test(answer.details) ? "0x" : undefined;
}

/** Revert data as a line of text, such as "SlippageExceeded(99, 100)". */
export function describeRevert(data: Hex): string {
  return inOneLine(readReason(data));
}

/** The words of a contract or a node, sanitised for display: a terminal obeys some characters. */
export function inOneLine(text: string): string {
  return text.replace(/\p{C}+/gu, " ").slice(0, 200);
}

function readReason(data: Hex): string {
  if (data === "0x") return "without a reason";
  try {
    const { errorName, args = [] } = decodeErrorResult({ abi: oftAbi, data });
    return String(errorName) === "Error" ? String(args[0]) : `${errorName}(${args.join(", ")})`;
  } catch {
    return data.slice(0, 10);
  }
}
