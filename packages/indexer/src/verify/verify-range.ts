import {
  endpointProblem,
  type RpcEndpointHandle,
  type RpcOutcome,
  RpcResponseError,
} from "@coinslot/chain";
import type { ChainContext } from "../chain-context.ts";
import { judgeFailure } from "../history/judge-failure.ts";
import type { Segment } from "../history/plan-segments.ts";
import { type BlockReceipts, receiptsCalls, receiptsOf } from "../proof/read-receipts.ts";
import { getTransferLogs } from "../rpc/get-logs.ts";
import type { BlockId } from "../store/block-id.ts";
import { createTransferBatch } from "../transfer-log/transfer-batch.ts";
import {
  areConfirmed,
  confirmBlocks,
  readHeadersOnChainOf,
  readReceiptsOnChainOf,
  requestOnChainOf,
} from "./anchored-request.ts";
import { blocksToProve, type VerificationRange } from "./choose-range.ts";
import { areTimesAscending, findDifferingBlocks, findMistimedBlocks } from "./compare-readings.ts";
import { ContradictionError } from "./contradiction-error.ts";
import { type Difference, type JudgedBlock, judgeBlock } from "./judge-block.ts";

/** Result of a second reading of a range. */
export interface Verdict {
  /** Differences to be mended, under any verdict. */
  differences: readonly Difference[];
  /**
   * - `agreed`: the stored range, once mended, is verified.
   * - `unreliable`: the answer is not the chain's, and proves nothing.
   * - `deceptive`: answers agree with the stored range, and a proof with neither. So less has to be
   *   asked for at a time.
   * - `begun`: there is more to mend than is written at a time.
   */
  kind: "agreed" | "unreliable" | "deceptive" | "begun";
}

export interface VerificationQuestion {
  segment: Segment;
  chosen: VerificationRange;
  /**
   * An indexed final block, not below the range. An endpoint on a fork does not have it, and has no
   * say.
   */
  anchor: BlockId;
  signal: AbortSignal;
}

export interface RangeQuestion extends VerificationQuestion {
  /**
   * True if another endpoint contradicts the stored range, and this one has read it first. Then its
   * word counts for one block at a time, which its receipts prove and the others name.
   */
  isContradicted: boolean;
  /** Number of readings of the same range before. */
  reading: number;
}

/** Number of blocks decided by their receipts before an answer is thrown away, or taken. */
const proofsAtOnce = 8;
/** Number of blocks mended before the range is read again: a mend is one transaction. */
export const maxMends = 64;

/**
 * Reads a range for the second time, and decides every difference by receipts. Some blocks are
 * always proven. Throws an error that makes the caller ask another endpoint, or for less.
 */
export async function verifyRange(
  context: ChainContext,
  endpoint: RpcEndpointHandle,
  { segment, chosen, anchor, isContradicted, reading, signal }: RangeQuestion,
): Promise<Verdict> {
  const { tokens } = segment;
  const { asked, range } = chosen;
  const addresses = tokens.map(({ address }) => address);
  const samples = blocksToProve(chosen, { reading, random: context.random });
  const place = { fromBlock: asked.from, toBlock: asked.next - 1 };
  const [logs, ...outcomes] = await requestOnChainOf(endpoint, anchor, {
    calls: [getTransferLogs(place, addresses), ...samples.flatMap(receiptsCalls)],
    minBlock: place.toBlock,
    signal,
  });
  if (logs?.ok !== true) throw logs?.error;
  const { database } = context;
  const batch = createTransferBatch(logs.result, { tokens, ...place }, database.dialect);
  const [fault] = batch.faults;
  if (fault !== undefined)
    throw endpointProblem(endpoint, { kind: "malformed", details: `it answered with ${fault}` });

  const contents = findDifferingBlocks(chosen.stored, batch, asked);
  const isOwn = (number: number) => number >= range.from && number < range.next;
  const judged = new Map<number, JudgedBlock>();
  await judge(samples, (block) => {
    const start = 2 * samples.indexOf(block);
    return receiptsOrNothing(endpoint, context, {
      block,
      outcomes: outcomes.slice(start, start + 2),
    });
  });
  const differing = [...new Set([...contents, ...(await findWrongTimes())])].filter(
    chosen.isIndexed,
  );
  const toJudge = differing.slice(0, maxMends).filter((block) => !judged.has(block));
  const isAlone = range.next - range.from === 1;
  const isAsRead = () => [...judged.values()].every((each) => each.isAsRead);
  const isDeceptive = samples.some(
    (block) => judged.get(block)?.isAsRead === false && !differing.includes(block),
  );
  for (let start = 0; (isAlone || isAsRead()) && start < toJudge.length; start += proofsAtOnce)
    await judge(toJudge.slice(start, start + proofsAtOnce), (block) =>
      readReceiptsOnChainOf(endpoint, anchor, { block, evidence: context.evidence, signal }),
    );
  // A known transfer just below the range may be the wrong one; above the anchor live decides.
  const wrong = [...judged.values()].filter(({ isAsStored }) => !isAsStored);
  const toMend = wrong.filter(
    ({ isProven, isDecided, isAsRead, block }) =>
      // The first reader may take its own word back. The others still have to agree.
      (isContradicted ? isProven || (isAlone && isAsRead) : isDecided) &&
      block.number <= anchor.number,
  );
  const alone = isAlone ? judged.get(range.from) : undefined;
  const own = toMend.filter(({ block }) => isOwn(block.number));
  const beside = toMend.filter((each) => !own.includes(each));
  const said = isContradicted && alone !== undefined ? [...new Set([...own, alone])] : own;
  const asking = (these: readonly Difference[]) => ({
    anchor,
    blocks: these.map(({ block }) => block),
    signal,
  });
  await confirmBlocks(context, endpoint, asking(said));
  const differences = (await areConfirmed(context, endpoint, asking(beside))) ? toMend : own;
  const isUndecided = wrong.some(({ isDecided, block }) => !isDecided && isOwn(block.number));
  // Where the whole range is decided, nothing is left for the endpoint's logs to agree on.
  const isReliable = !isUndecided && (isAsRead() || alone?.isDecided === true);
  if (!isReliable) return { differences, kind: isDeceptive ? "deceptive" : "unreliable" };
  if (isContradicted && alone?.isProven !== true)
    return { differences, kind: isAlone ? "unreliable" : "deceptive" };
  return { differences, kind: differing.length > maxMends ? "begun" : "agreed" };

  /**
   * Some nodes put wrong times into their logs: the headers decide, which are many in one request.
   * A node agrees with itself. So all times are asked for where a sample's is not that of its
   * header, as stored or as read. The same holds where they fall.
   */
  async function findWrongTimes(): Promise<number[]> {
    const areDoubtful = samples.some(isMistimed) || !areTimesAscending(chosen.stored);
    const doubtful = areDoubtful
      ? [...chosen.stored.blocks.keys()].filter((number) => number <= anchor.number)
      : findMistimedBlocks(chosen.stored, batch, asked);
    if (doubtful.length === 0) return [];
    const headers = await readHeadersOnChainOf(endpoint, anchor, { blocks: doubtful, signal });
    return headers
      .filter(
        ({ number, timestampMs }) => chosen.stored.blocks.get(number)?.timestampMs !== timestampMs,
      )
      .map(({ number }) => number);
  }

  function isMistimed(block: number): boolean {
    const read = batch.blocks.get(block)?.timestampMs;
    const actual = judged.get(block)?.block.timestampMs ?? read;
    const stored = chosen.stored.blocks.get(block)?.timestampMs;
    const isOther = (time?: number) => time !== undefined && time !== actual;
    return actual !== undefined && [read, stored].some(isOther);
  }

  async function judge(
    blocks: readonly number[],
    read: (block: number) => Promise<BlockReceipts | undefined>,
  ): Promise<void> {
    const answers = await Promise.all(blocks.map(read)).catch((cause: unknown) => {
      signal.throwIfAborted();
      const isContent = blocks.some((block) => contents.includes(block));
      const isContradiction = isContent && judgeFailure(cause).kind === "ask-less";
      if (!isContradiction) throw cause;
      throw new ContradictionError("An answer differs, and has no receipts", { cause });
    });
    const found = answers.flatMap((receipts) =>
      receipts === undefined ? [] : judgeBlock(context, { tokens, chosen, batch, receipts }),
    );
    for (const each of found) judged.set(each.block.number, each);
  }
}

/** An endpoint without receipts proves nothing; it still can agree. */
async function receiptsOrNothing(
  endpoint: RpcEndpointHandle,
  { evidence }: ChainContext,
  { block, outcomes }: { block: number; outcomes: readonly (RpcOutcome | undefined)[] },
): Promise<BlockReceipts | undefined> {
  try {
    return await receiptsOf(endpoint, { block, evidence }, outcomes);
  } catch (error) {
    if (!(error instanceof RpcResponseError)) throw error;
    return undefined;
  }
}
