import { blockByNumber, type RpcEndpointHandle, RpcResponseError } from "@coinslot/chain";
import type { ChainContext } from "../chain-context.ts";
import type { Segment } from "../history/plan-segments.ts";
import {
  type BlockReceipts,
  readReceipts,
  receiptsCalls,
  receiptsOf,
  transfersAmong,
} from "../proof/read-receipts.ts";
import { headerOf } from "../rpc/block-header.ts";
import { endpointProblem } from "../rpc/endpoint-problem.ts";
import { getTransferLogs } from "../rpc/get-logs.ts";
import type { BlockId } from "../store/block-id.ts";
import type { KnownToken } from "../store/known-token.ts";
import { createTransferBatch, type TransferBatch } from "../transfer-log/transfer-batch.ts";
import { densestBlock, type VerificationRange } from "./choose-range.ts";
import { findDifferingBlocks } from "./compare-readings.ts";

/** A block whose stored transfers are not those of the chain, and what they are. */
export interface Difference {
  block: { number: number; hash: string; timestampMs: number };
  truth: TransferBatch;
}

/** What a second reading of a range finds. */
export interface Verdict {
  /** To be mended, whatever the verdict is. */
  differences: readonly Difference[];
  /**
   * `agreed`: what is stored, once mended, is verified. `unreliable`: the answer is not the chain's, and says nothing.
   * `deceptive`: answers agree with what is stored, and a proof does with neither, so less has to be asked for at a time.
   */
  kind: "agreed" | "unreliable" | "deceptive";
}

export interface VerificationQuestion {
  segment: Segment;
  chosen: VerificationRange;
  /** A final block of ours, not below the range: an endpoint on a fork does not have it, and has no say. */
  anchor: BlockId;
  signal: AbortSignal;
}

/** So many blocks are decided by their receipts before an answer is thrown away, or taken. */
const PROOFS_AT_ONCE = 8;

/**
 * Reads a range for the second time, and decides by receipts whatever is not as it is stored. One block is always
 * proven: the densest, or a random one where nothing is stored. Throws what makes the caller ask another endpoint, or
 * for less.
 */
export async function verifyRange(
  context: ChainContext,
  endpoint: RpcEndpointHandle,
  { segment, chosen, anchor, signal }: VerificationQuestion,
): Promise<Verdict> {
  const { tokens } = segment;
  const { asked, range } = chosen;
  const addresses = tokens.map(({ address }) => address);
  const sample =
    densestBlock(chosen) ?? range.from + Math.floor(context.random() * (range.next - range.from));
  const place = { fromBlock: asked.from, toBlock: asked.next - 1 };
  const [logs, anchored, ...outcomes] = await endpoint.requestMany(
    [
      getTransferLogs(place, addresses),
      blockByNumber(BigInt(anchor.number)),
      ...receiptsCalls(sample),
    ],
    { minBlock: BigInt(Math.max(place.toBlock, anchor.number)), signal },
  );
  if (headerOf(endpoint, anchored, anchor.number).hash !== anchor.hash)
    throw endpointProblem(endpoint, {
      kind: "behind",
      details: `its block ${anchor.number} is another one: it is on a fork`,
    });
  if (logs?.ok !== true) throw logs?.error;
  const { database } = context;
  const batch = createTransferBatch(logs.result, { tokens, ...place }, database.dialect);
  const [fault] = batch.faults;
  if (fault !== undefined)
    throw endpointProblem(endpoint, { kind: "malformed", details: `it answered with ${fault}` });

  const proven = new Map<number, Difference & { isAsStored: boolean; isAsRead: boolean }>();
  const judge = (receipts: BlockReceipts) => {
    const { number, hash, timestampMs } = receipts.header;
    const truth = readTruth(context, tokens, receipts);
    const only = { from: number, next: number + 1 };
    proven.set(number, {
      block: { number, hash, timestampMs },
      truth,
      isAsStored: findDifferingBlocks(chosen.stored, truth, only).length === 0,
      isAsRead:
        findDifferingBlocks({ rows: batch.rows, hashes: hashesOf(batch) }, truth, only).length ===
        0,
    });
  };
  await judgeSample();
  const differing = findDifferingBlocks(chosen.stored, batch, asked);
  let isReliable = [...proven.values()].every(({ isAsRead }) => isAsRead);
  const isDeceptive = !isReliable && !differing.includes(sample);
  // The whole range is proven: whatever the endpoint's logs say, there is nothing left to agree on.
  if (range.next - range.from === 1 && proven.has(range.from)) isReliable = true;
  else await judgeDifferences();
  // A known transfer just below the range may be what is wrong; above the anchor live decides.
  const differences = [...proven.values()].filter(
    ({ isAsStored, block }) => !isAsStored && block.number <= anchor.number,
  );
  return { differences, kind: isReliable ? "agreed" : isDeceptive ? "deceptive" : "unreliable" };

  async function judgeSample() {
    const question = { block: sample, evidence: context.evidence };
    try {
      judge(await receiptsOf(endpoint, question, outcomes));
    } catch (error) {
      // An endpoint without receipts proves nothing; it still can agree.
      if (!(error instanceof RpcResponseError)) throw error;
    }
  }

  async function judgeDifferences() {
    for (let start = 0; isReliable && start < differing.length; start += PROOFS_AT_ONCE) {
      const blocks = differing
        .slice(start, start + PROOFS_AT_ONCE)
        .filter((each) => !proven.has(each));
      const read = blocks.map((block) =>
        readReceipts(endpoint, { block, evidence: context.evidence }),
      );
      for (const receipts of await Promise.all(read)) judge(receipts);
      isReliable = [...proven.values()].every(({ isAsRead }) => isAsRead);
    }
  }
}

/** The transfers of a block by its receipts. Times come from the header. */
function readTruth(
  { database }: ChainContext,
  tokens: readonly KnownToken[],
  { header, logs }: BlockReceipts,
): TransferBatch {
  const { number, hash, timestampMs } = header;
  const place = { tokens, fromBlock: number, toBlock: number, blockHash: hash };
  const truth = createTransferBatch(transfersAmong(logs, tokens), place, database.dialect);
  for (const block of truth.blocks.values()) block.timestampMs = timestampMs;
  return truth;
}

function hashesOf({ blocks }: TransferBatch): ReadonlyMap<number, string> {
  return new Map([...blocks].map(([number, { hash }]) => [number, hash]));
}
