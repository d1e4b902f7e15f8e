import {
  endpointProblem,
  type RpcEndpointHandle,
  type RpcOutcome,
  RpcResponseError,
} from "@coinslot/chain";
import type { Dialect } from "@coinslot/storage";
import { type ChainEvidence, noteBloom } from "../proof/chain-evidence.ts";
import { createBloomTest } from "../proof/logs-bloom.ts";
import { readReceipts, receiptsCalls, receiptsOf, transfersAmong } from "../proof/read-receipts.ts";
import { type BlockHeader, headerByHash, headerOf } from "../rpc/block-header.ts";
import { getTransferLogs } from "../rpc/get-logs.ts";
import type { Tolerance } from "../rpc/tolerance.ts";
import type { BlockId } from "../store/block-id.ts";
import type { KnownToken } from "../store/known-token.ts";
import { createTransferBatch, type TransferBatch } from "../transfer-log/transfer-batch.ts";
import { transferTopic } from "../transfer-log/transfer-topic.ts";

/** No endpoint truncates lists as short as this. */
const fewLogs = 10;
/** Transactions whose receipts are read in one request: an endpoint bounds its answers. */
const receiptsAtOnce = 500;

export interface BlocksQuestion {
  blocks: readonly BlockId[];
  tokens: readonly KnownToken[];
  dialect: Dialect;
  tolerates: Tolerance;
  /**
   * The most logs that each endpoint has returned for one block, as a complete list. Kept by the
   * caller.
   */
  maxLogs: Map<number, number>;
  evidence: ChainEvidence;
}

/**
 * The transfers of blocks that may still be replaced, each asked for by its hash. An endpoint on
 * any fork answers for these blocks or not at all. The header travels in the same request, so that
 * an endpoint without a block cannot pass it off as empty.
 *
 * A node may have a block before it has its logs. So an empty answer is believed only where the
 * header proves it. Either the block has no transaction, or its bloom filter rules the logs out on
 * a chain with real filters. Elsewhere the receipts decide.
 */
export async function readBlocks(
  endpoint: RpcEndpointHandle,
  question: BlocksQuestion,
): Promise<TransferBatch[]> {
  const { blocks, tokens, tolerates } = question;
  const addresses = tokens.map(({ address }) => address);
  const outcomes = await endpoint.requestMany(
    blocks.flatMap(({ hash }) => [
      headerByHash(hash),
      getTransferLogs({ blockHash: hash }, addresses),
    ]),
  );
  const receipts = await readSuspects(endpoint, question, outcomes);
  const batches: TransferBatch[] = [];
  const oddities: string[] = [];
  const malformed = (found: string | undefined) =>
    endpointProblem(endpoint, { kind: "malformed", details: `it answered for block ${found}` });
  for (const [index, block] of blocks.entries()) {
    const header = headerOf(endpoint, outcomes[2 * index], block.hash);
    const logs = outcomes[2 * index + 1];
    // Fallback over a provider's limit of logs, as in history.
    const isRefused = logs?.ok === false && logs.error instanceof RpcResponseError;
    if (logs?.ok === false && !isRefused) throw logs.error;
    const count = logs?.ok ? countOf(logs.result) : 0;
    const isBelievable = logs?.ok && count < maxLogsOf(endpoint, question);
    const answer =
      receipts.get(block.hash) ??
      (isBelievable ? logs.result : await readByReceipts(endpoint, question, block));
    const isAll = logs?.ok && countOf(answer) === count;
    if (isAll)
      question.maxLogs.set(
        endpoint.endpoint,
        Math.max(countOf(answer), maxLogsOf(endpoint, question)),
      );
    const batch = readBlock(question, header, answer);
    const [fault] = batch.faults;
    if (fault !== undefined) throw malformed(`${block.hash}: ${fault}`);
    noteBloom(question.evidence, header.logsBloom, batch.last);
    batches.push(batch);
    if (batch.oddities.length > 0) oddities.push(`${block.hash}: ${batch.oddities.join("; ")}`);
  }
  if (tolerates(oddities)) return batches;
  throw malformed(oddities[0]);
}

/**
 * The transfers of the blocks whose empty answer nothing proves, by their receipts. A chain may
 * have a transaction without logs in each block, so all are suspects: few requests read them
 * together.
 */
async function readSuspects(
  endpoint: RpcEndpointHandle,
  question: BlocksQuestion,
  outcomes: readonly RpcOutcome[],
): Promise<ReadonlyMap<string, readonly unknown[]>> {
  const { blocks, tokens, evidence } = question;
  const groups: string[][] = [];
  let room = 0;
  for (const [index, { hash }] of blocks.entries()) {
    const header = headerOf(endpoint, outcomes[2 * index], hash);
    const logs = outcomes[2 * index + 1];
    const isSuspect = logs?.ok && countOf(logs.result) === 0 && !isProvenEmpty(header, question);
    if (!isSuspect) continue;
    const { transactionCount = receiptsAtOnce } = header;
    const group = transactionCount <= room ? groups.at(-1) : undefined;
    if (group === undefined) groups.push([hash]);
    else group.push(hash);
    room = (group === undefined ? receiptsAtOnce : room) - transactionCount;
  }
  const transfers = new Map<string, readonly unknown[]>();
  for (const group of groups) {
    const answers = await endpoint.requestMany(group.flatMap((hash) => receiptsCalls(hash)));
    for (const [index, block] of group.entries()) {
      const own = answers.slice(2 * index, 2 * index + 2);
      const { logs } = await receiptsOf(endpoint, { block, evidence }, own);
      transfers.set(block, transfersAmong(logs, tokens));
    }
  }
  return transfers;
}

async function readByReceipts(
  endpoint: RpcEndpointHandle,
  { tokens, evidence }: BlocksQuestion,
  { hash }: BlockId,
): Promise<unknown> {
  const { logs } = await readReceipts(endpoint, { block: hash, evidence });
  return transfersAmong(logs, tokens);
}

/**
 * A filter of zeros is that of a block without logs, or of a node that leaves the filters out. So
 * it proves nothing, nor does a missing one.
 */
function isProvenEmpty(
  { isEmpty, logsBloom }: BlockHeader,
  { tokens, evidence }: BlocksQuestion,
): boolean {
  if (isEmpty) return true;
  if (evidence.blooms !== "real" || logsBloom === undefined) return false;
  return !mayHoldTransfers(logsBloom, tokens);
}

/**
 * Some endpoints truncate a long list without an error. So as many logs as ever before, or more,
 * are taken from the receipts. If those hold no more, the endpoint is believed up to that number
 * from then on.
 */
function maxLogsOf({ endpoint }: RpcEndpointHandle, { maxLogs }: BlocksQuestion): number {
  return maxLogs.get(endpoint) ?? fewLogs;
}

function countOf(answer: unknown): number {
  return Array.isArray(answer) ? answer.length : 0;
}

function readBlock(
  { tokens, dialect }: BlocksQuestion,
  { number, hash, timestampMs }: BlockHeader,
  answer: unknown,
): TransferBatch {
  const place = { tokens, fromBlock: number, toBlock: number, blockHash: hash };
  const batch = createTransferBatch(answer, place, dialect);
  for (const block of batch.blocks.values()) block.timestampMs = timestampMs;
  return batch;
}

const bloomTests = new Map<string, (bloom: string) => boolean>();

function mayHoldTransfers(bloom: string, tokens: readonly KnownToken[]): boolean {
  return tokens.some(({ address }) => {
    const test = bloomTests.get(address) ?? createBloomTest([address, transferTopic]);
    bloomTests.set(address, test);
    return test(bloom);
  });
}
