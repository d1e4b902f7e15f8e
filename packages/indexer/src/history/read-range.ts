import { blockByNumber, endpointProblem, type RpcEndpointHandle } from "@coinslot/chain";
import type { Dialect } from "@coinslot/storage";
import type { ChainEvidence } from "../proof/chain-evidence.ts";
import { readReceipts, transfersAmong } from "../proof/read-receipts.ts";
import { addTimestamps } from "../rpc/add-timestamps.ts";
import { headerOf } from "../rpc/block-header.ts";
import { getTransferLogs } from "../rpc/get-logs.ts";
import type { Tolerance } from "../rpc/tolerance.ts";
import type { BlockId } from "../store/block-id.ts";
import type { BlockRange } from "../store/coverage.ts";
import type { KnownToken } from "../store/known-token.ts";
import { createTransferBatch, type TransferBatch } from "../transfer-log/transfer-batch.ts";
import type { EndpointTrust } from "./endpoint-trust.ts";

export interface RangeQuestion {
  tokens: readonly KnownToken[];
  range: BlockRange;
  dialect: Dialect;
  trust: EndpointTrust;
  evidence: ChainEvidence;
  tolerates: Tolerance;
}

/** The believed part of an endpoint's answer: `range` may end earlier than asked for. */
export interface RangeAnswer {
  range: BlockRange;
  /** The last block of the range, where its hash is known. */
  end?: BlockId;
  batch: TransferBatch;
}

/**
 * Reads the transfers of a range at one endpoint. Throws an error that makes the pool ask the next
 * endpoint, or the caller ask for less.
 */
export async function readRange(
  endpoint: RpcEndpointHandle,
  question: RangeQuestion,
): Promise<RangeAnswer> {
  const { tokens, range, trust } = question;
  const place = { fromBlock: range.from, toBlock: range.next - 1 };
  // Both in one HTTP request, so that behind a load balancer one node answers both. A node without
  // the last block would return the logs it has, and the missing ones would go unnoticed.
  const [logs, lastBlock] = await endpoint.requestMany([
    getTransferLogs(place, addressesOf(tokens)),
    blockByNumber(BigInt(place.toBlock)),
  ]);
  if (logs?.ok === false) throw logs.error;
  const { number, hash } = headerOf(endpoint, lastBlock, place.toBlock);
  const batch = readBatch(endpoint, question, { answer: logs?.result, range });

  const next = await trust.believedUpTo(endpoint, { tokens, range, batch });
  if (next === range.from) return readBlockByReceipts(endpoint, question);
  const believed = { from: range.from, next };
  const answer =
    next === range.next
      ? batch
      : readBatch(endpoint, question, { answer: below(logs?.result, next), range: believed });
  await addTimestamps(endpoint, answer);
  const isWhole = next === range.next;
  return { range: believed, batch: answer, ...(isWhole && { end: { number, hash } }) };
}

/**
 * The fallback for one block whose logs an endpoint refuses, or truncates: its receipts hold them
 * too.
 */
export async function readBlockByReceipts(
  endpoint: RpcEndpointHandle,
  question: RangeQuestion,
): Promise<RangeAnswer> {
  const { tokens, range: whole, evidence } = question;
  const { from } = whole;
  const range = { from, next: from + 1 };
  const { logs } = await readReceipts(endpoint, { block: from, evidence });
  const answer = transfersAmong(logs, tokens);
  const batch = readBatch(endpoint, question, { answer, range });
  await addTimestamps(endpoint, batch);
  return { range, batch };
}

function readBatch(
  endpoint: RpcEndpointHandle,
  { tokens, dialect, tolerates }: RangeQuestion,
  { answer, range }: { answer: unknown; range: BlockRange },
): TransferBatch {
  const place = { tokens, fromBlock: range.from, toBlock: range.next - 1 };
  const batch = createTransferBatch(answer, place, dialect);
  const { oddities, faults } = batch;
  const isTaken =
    faults.length === 0 && (oddities.length === 0 || tolerates([oddities.join("; ")]));
  if (isTaken) return batch;
  const details = `it answered with ${faults[0] ?? oddities[0]}`;
  throw endpointProblem(endpoint, { kind: "malformed", details });
}

/**
 * The logs of an answer that are in blocks below `next`. An entry that is no log stays, to be found
 * odd.
 */
function below(answer: unknown, next: number): unknown {
  if (!Array.isArray(answer)) return answer;
  return answer.filter(
    (log: unknown) =>
      !(typeof log === "object" && log !== null && "blockNumber" in log) ||
      !(Number(log.blockNumber) >= next),
  );
}

function addressesOf(tokens: readonly KnownToken[]): readonly string[] {
  return tokens.map(({ address }) => address);
}
