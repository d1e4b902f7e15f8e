import { maxBlockTime } from "../store/bound-times.ts";
import { hasPosition, positionOf } from "../store/position.ts";
import { transferTopic } from "./transfer-topic.ts";

/** An ERC-20 `Transfer` event. Hex is in lowercase. */
export interface TransferLog {
  /** Of the token, with `0x`. */
  address: string;
  position: number;
  blockHash: string;
  transactionHash: string;
  transactionIndex: number;
  /** As 40 hex digits, the key of balances. */
  from: string;
  to: string;
  amount: bigint;
  /** Undefined where the node omits it, as many do, or made it up. */
  timestampMs: number | undefined;
}

/** An address in a topic stands in the last 20 of its 32 bytes. */
const addressPadding = "0x000000000000000000000000";
const hashPattern = /^0x[0-9a-f]{64}$/;
const addressPattern = /^0x[0-9a-f]{40}$/;

/** A log that is no transfer. */
export interface OddLog {
  problem: string;
  /**
   * True if a token may have written it so. A log that no token can write is a fault of the node.
   */
  isPossible: boolean;
}

/**
 * Decodes one log of an answer to `eth_getLogs`, or returns its fault. Handwritten, since it runs
 * for every event of a chain. Its test compares it with viem's decoder.
 */
export function decodeTransferLog(log: unknown): TransferLog | OddLog {
  if (typeof log !== "object" || log === null) return impossible("a log that is not an object");
  if ("removed" in log && log.removed === true) return impossible("a removed log");
  const address = "address" in log ? lowercase(log.address) : undefined;
  const blockHash = "blockHash" in log ? hash(log.blockHash) : undefined;
  const transactionHash = "transactionHash" in log ? hash(log.transactionHash) : undefined;
  const blockNumber = "blockNumber" in log ? quantity(log.blockNumber) : undefined;
  const logIndex = "logIndex" in log ? quantity(log.logIndex) : undefined;
  const transactionIndex = "transactionIndex" in log ? quantity(log.transactionIndex) : undefined;
  if (
    address === undefined ||
    !addressPattern.test(address) ||
    blockHash === undefined ||
    transactionHash === undefined ||
    blockNumber === undefined ||
    logIndex === undefined ||
    transactionIndex === undefined ||
    !hasPosition(blockNumber, logIndex)
  )
    return impossible("a log without its place");
  if (!("topics" in log && Array.isArray(log.topics))) return impossible("a log without topics");
  const [topic, from, to]: unknown[] = log.topics;
  if (topic !== transferTopic) return impossible("a log of another event");
  const { length } = log.topics;
  const fromAddress = addressOf(from);
  const toAddress = addressOf(to);
  const data = "data" in log ? hash(log.data) : undefined;
  if (length !== 3 || fromAddress === undefined || toAddress === undefined || data === undefined) {
    const form =
      length !== 3
        ? `${length} topics`
        : data === undefined
          ? "data that are not an amount"
          : "topics that are not addresses";
    const problem = `a Transfer with ${form}: log ${logIndex} of transaction ${transactionHash}`;
    return { problem, isPossible: true };
  }
  const seconds = "blockTimestamp" in log ? quantity(log.blockTimestamp) : undefined;
  return {
    address,
    position: positionOf(blockNumber, logIndex),
    blockHash,
    transactionHash,
    transactionIndex,
    from: fromAddress,
    to: toAddress,
    amount: BigInt(data),
    // Some nodes write zeros instead of the time, above all into the logs of receipts. A time
    // beyond all dates is made up.
    timestampMs:
      seconds === undefined || seconds === 0 || seconds > maxBlockTime ? undefined : seconds * 1000,
  };
}

function impossible(problem: string): OddLog {
  return { problem, isPossible: false };
}

/** Nodes write lowercase, so the first test nearly always decides. */
function hash(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  if (hashPattern.test(value)) return value;
  const lower = value.toLowerCase();
  return hashPattern.test(lower) ? lower : undefined;
}

function addressOf(topic: unknown): string | undefined {
  const word = hash(topic);
  return word?.startsWith(addressPadding) ? word.slice(addressPadding.length) : undefined;
}

function lowercase(value: unknown): string | undefined {
  return typeof value === "string" ? value.toLowerCase() : undefined;
}

function quantity(value: unknown): number | undefined {
  if (typeof value !== "string" || !value.startsWith("0x")) return undefined;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : undefined;
}
