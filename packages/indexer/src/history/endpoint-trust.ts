import { type RpcEndpointHandle, RpcResponseError } from "@coinslot/chain";
import type { ChainEvidence } from "../proof/chain-evidence.ts";
import { readReceipts, transfersAmong } from "../proof/read-receipts.ts";
import { getLogs, getTransferLogs } from "../rpc/get-logs.ts";
import { parseLogPlace } from "../rpc/parse-log-place.ts";

import type { BlockRange } from "../store/coverage.ts";
import type { KnownToken } from "../store/known-token.ts";
import { blockOfPosition } from "../store/position.ts";
import type { TransferLog } from "../transfer-log/decode-transfer-log.ts";
import type { TransferBatch } from "../transfer-log/transfer-batch.ts";
import { transferTopic } from "../transfer-log/transfer-topic.ts";

/** A log that is known to be on the chain, and the filter that matches it alone. */
interface Witness {
  block: number;
  filter: { address: string; topics: readonly (string | null)[] };
}

interface Proven {
  /** Number of blocks that were answered in full. */
  span: number;
  /** Number of logs in one complete answer. */
  logs: number;
  witness: Witness | undefined;
}

export interface EndpointTrust {
  /**
   * The first block from which on an answer cannot be believed. `range.next`: all can;
   * `range.from`: not even its first block. May ask the endpoint more.
   */
  believedUpTo(
    endpoint: RpcEndpointHandle,
    answer: { tokens: readonly KnownToken[]; range: BlockRange; batch: TransferBatch },
  ): Promise<number>;
}

/**
 * Some endpoints truncate an answer without an error, after a number of blocks or of logs. So each
 * is believed up to the sizes that it has proven. Larger ones it has to prove first:
 *
 * - more **blocks** than ever before: a range of that width which ends at a known log must contain
 *   that log. The filter lets nothing else through, so the proof is small. Where nothing is known
 *   yet, any log of the last block serves. Where that block has none, nothing can be proven, and
 *   the endpoint is believed.
 * - as many **logs** as ever before, or more: the blocks behind the last log must be empty. The
 *   last log's block must not hold more, by its receipts if it alone holds that many. An endpoint
 *   that truncates returns the same number each time, which is never below its record.
 *
 * Records are rare, so the proofs are a handful of requests for a whole chain.
 */
export function createEndpointTrust(evidence: ChainEvidence): EndpointTrust {
  const endpoints = new Map<number, Proven>();

  function provenBy({ endpoint }: RpcEndpointHandle): Proven {
    const known = endpoints.get(endpoint) ?? { span: 1, logs: 1, witness: undefined };
    endpoints.set(endpoint, known);
    return known;
  }

  return {
    async believedUpTo(endpoint, { tokens, range, batch }) {
      const proven = provenBy(endpoint);
      const { last } = batch;
      if (last !== undefined) proven.witness = witnessOf(last);
      const cutByBlocks = await cutAfterBlocks(endpoint, proven, { range, evidence });
      const cutByLogs = await cutAfterLogs(endpoint, proven, {
        tokens,
        range,
        batch,
        evidence,
      });
      return Math.min(cutByBlocks, cutByLogs);
    },
  };
}

async function cutAfterBlocks(
  endpoint: RpcEndpointHandle,
  proven: Proven,
  { range, evidence }: { range: BlockRange; evidence: ChainEvidence },
): Promise<number> {
  const span = range.next - range.from;
  if (span <= proven.span) return range.next;
  proven.witness ??= await findWitness(endpoint, range.next - 1, evidence);
  const { witness } = proven;
  if (witness === undefined) return range.next;
  const fromBlock = Math.max(0, witness.block - span + 1);
  const answer = await endpoint.request(
    getLogs({ fromBlock, toBlock: witness.block }, witness.filter),
  );
  const isThere =
    Array.isArray(answer) && answer.some((log) => parseLogPlace(log)?.block === witness.block);
  if (isThere) proven.span = Math.max(proven.span, witness.block - fromBlock + 1);
  // The answer itself proves the blocks up to its last log.
  const seen = witness.block >= range.from && witness.block < range.next ? witness.block + 1 : 0;
  return Math.min(range.next, Math.max(seen, range.from + proven.span));
}

async function cutAfterLogs(
  endpoint: RpcEndpointHandle,
  proven: Proven,
  {
    tokens,
    range,
    batch,
    evidence,
  }: {
    tokens: readonly KnownToken[];
    range: BlockRange;
    batch: TransferBatch;
    evidence: ChainEvidence;
  },
): Promise<number> {
  const { rows, last } = batch;
  if (last === undefined || rows.length < proven.logs) return range.next;
  const lastBlock = blockOfPosition(last.position);
  const ours = rows.filter((row) => blockOfPosition(row.position) === lastBlock).length;
  const addresses = tokens.map(({ address }) => address);
  const countFrom = async (fromBlock: number) => {
    if (fromBlock >= range.next) return 0;
    const place = { fromBlock, toBlock: range.next - 1 };
    const answer = await endpoint.request(getTransferLogs(place, addresses));
    return Array.isArray(answer) ? answer.length : Number.NaN;
  };
  if (ours < proven.logs) {
    if ((await countFrom(lastBlock)) !== ours) return lastBlock;
  } else {
    // A request for the block alone would be truncated in the same way; its receipts are not.
    const { logs } = await readReceipts(endpoint, { block: lastBlock, evidence });
    if (transfersAmong(logs, tokens).length !== ours) return lastBlock;
    if ((await countFrom(lastBlock + 1)) !== 0) return lastBlock + 1;
  }
  proven.logs = Math.max(proven.logs, rows.length);
  return range.next;
}

function witnessOf({ address, from, to, position }: TransferLog): Witness {
  const topics = [transferTopic, `0x${from.padStart(64, "0")}`, `0x${to.padStart(64, "0")}`];
  return { block: blockOfPosition(position), filter: { address, topics } };
}

async function findWitness(
  endpoint: RpcEndpointHandle,
  block: number,
  evidence: ChainEvidence,
): Promise<Witness | undefined> {
  const first = parseLogPlace(await findAnyLog(endpoint, block, evidence));
  return first && { block: first.block, filter: { address: first.address, topics: first.topics } };
}

/**
 * Undefined where the block has none, or the endpoint returns no logs without an address in the
 * filter.
 */
async function findAnyLog(
  endpoint: RpcEndpointHandle,
  block: number,
  evidence: ChainEvidence,
): Promise<unknown> {
  try {
    const answer = await endpoint.request(getLogs({ fromBlock: block, toBlock: block }, {}));
    return Array.isArray(answer) ? answer[0] : undefined;
  } catch (error) {
    if (!(error instanceof RpcResponseError)) throw error;
  }
  try {
    const { logs } = await readReceipts(endpoint, { block, evidence });
    return logs[0];
  } catch (error) {
    if (!(error instanceof RpcResponseError)) throw error;
    return undefined;
  }
}
