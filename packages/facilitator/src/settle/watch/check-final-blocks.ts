import { endpointProblem, type RpcEndpointHandle, RpcError } from "@coinslot/chain";
import { readDatabaseNow } from "../../ledger/queries/common-time.ts";
import {
  findFinalBlocks,
  findLeftBlocks,
  forgetLeft,
  type LeftBlock,
  markLeft,
  unmarkLeft,
} from "../../ledger/transactions/final-blocks.ts";
import type { KnownBlock } from "../../ledger/transactions/undo-blocks.ts";
import { maxSearchedBlocks } from "../evidence/find-executions.ts";
import { isAwaited, noteAnswer } from "../evidence/silences.ts";
import { compareBlocks } from "./compare-blocks.ts";
import { takeBackFinal } from "./take-back-final.ts";
import type { WatchContext } from "./watch-context.ts";

/** Blocks read in one batch. */
const blocksAtOnce = 100;

const nodesDisagree =
  "nodes disagree about final blocks: nothing is taken back while one of them has these";

/** A comparison follows blocks that were missed after this many times `disputeMs`: ten minutes. */
const disputesBetween = 5;

/** Makes a comparison due at the next look. */
export function makeDue({ deep }: Pick<WatchContext, "deep">): void {
  deep.isDue = true;
  deep.nextAt = 0;
  deep.pauseMs = 0;
}

/**
 * Before blocks become final: makes a comparison due if blocks were missed since the last one, and
 * that is a while ago. A seller without sales asks for nothing, and a busy one seldom.
 */
export function doubtGap({ deep, context }: Pick<WatchContext, "deep" | "context">): void {
  const { clock, times } = context;
  const isOld = clock.now() - deep.checkedAt >= disputesBetween * times.disputeMs;
  if (deep.isUnsure && isOld) makeDue({ deep });
}

/**
 * Compares the newest final blocks of ours with the chain, where a reorganisation may have been
 * deeper than final. README.md of the ledger, "Deep reorganisations", has the steps.
 *
 * It begins with one block. Each that the chain has replaced is marked, backwards, until one
 * stands. The marks outlive the process. Payments of these blocks are taken back once they are
 * missing for `times.disputeMs`: at depth, at one endpoint at least, and at none of them there. An
 * endpoint without a height, or without an answer, says nothing about a block. Such a block waits
 * until that endpoint has been silent for ten minutes: another one may lie.
 *
 * The racers are two processes that watch, for a moment. Each write names the state before.
 *
 * @throws RpcError when the chain is unreachable
 */
export async function checkFinalBlocks(watch: WatchContext, head: bigint): Promise<void> {
  const { context, network, deep } = watch;
  const { ledger, clock, logger, times } = context;
  if (!deep.isDue || deep.nextAt > clock.now()) return;
  deep.pauseMs = Math.min(2 * deep.pauseMs || times.settlingMs, longestPauseMs(times));
  deep.nextAt = clock.now() + deep.pauseMs;
  const { end, marked } = await markReplaced(watch, head);
  const left = await findLeftBlocks(ledger, network.network);
  if (left.length === 0) {
    if (end !== "stands") return;
    deep.isDue = false;
    deep.nextAt = Number.POSITIVE_INFINITY;
    deep.isUnsure = false;
    deep.checkedAt = clock.now();
    return;
  }
  const now = await readDatabaseNow(ledger);
  const agedAt = Math.max(...left.map(({ leftAt }) => leftAt)) + times.disputeMs;
  if (marked > 0) {
    logger.error(
      { network: network.network, blocks: left.length, newest: left.at(-1)?.number },
      "final blocks have left the chain, by a node; if they stay away, their payments are taken back",
    );
  }
  if (agedAt > now) {
    deep.nextAt = clock.now() + Math.min(times.settlingMs, agedAt - now);
    return;
  }
  // A node that refuses older blocks ends the search as one that stands does.
  if (end === "missing") return;
  await decide(watch, left, head);
}

/** A comparison that decides nothing costs a request each time. */
function longestPauseMs({ settlingMs, disputeMs }: WatchContext["context"]["times"]): number {
  return Math.max(settlingMs, disputeMs);
}

/**
 * Marks the newest final blocks in whose place the chain has others, until one stands. None is
 * marked by one lying node: the newest is asked for at every endpoint first. Blocks far above the
 * head are left out: a lying node alone has shown them, and a comparison would wait for them until
 * the chain is as high.
 *
 * @returns their number, and the reason to end: the next one stands, or there is none; it is above
 * a node's head; a node refuses to show it; one node shows it, and another shows another block
 */
async function markReplaced(
  { context, network }: WatchContext,
  head: bigint,
): Promise<{
  end: "stands" | "missing" | "refused" | "disputed";
  marked: number;
}> {
  const { ledger, logger } = context;
  let marked = 0;
  // The ordinary case is one block.
  let limit = 1;
  for (let below = Number(head) + network.finalAfter + 1; ; limit = blocksAtOnce) {
    const wanted = { network: network.network, below, limit };
    const blocks = await findFinalBlocks(ledger, wanted);
    const last = blocks.at(-1);
    if (last === undefined) return { end: "stands", marked };
    const { present, absent, refused } = await compareBlocks(network.rpc, blocks);
    const [standing] = present;
    const replaced = absent.filter(({ number }) => !standing || number > standing.number);
    if (replaced.length > 0) {
      const votes = limit === 1 ? await askEndpoints(network.rpc.endpoints, replaced) : [];
      if (votes.some(({ present }) => present.size > 0)) {
        logger.warn({ network: network.network, block: last.number }, nodesDisagree);
        return { end: "disputed", marked };
      }
      await markLeft(ledger, { network: network.network, blocks: replaced });
      marked += replaced.length;
    }
    if (standing !== undefined) return { end: "stands", marked };
    if (absent.length + refused.length < blocks.length) return { end: "missing", marked };
    if (refused.length > 0) return { end: "refused", marked };
    below = last.number;
  }
}

/** Asks every endpoint, and takes back what was in the blocks that all of them have replaced. */
async function decide(
  watch: WatchContext,
  left: readonly LeftBlock[],
  head: bigint,
): Promise<void> {
  const { context, network, deep } = watch;
  const { ledger, logger, clock } = context;
  const [lowest] = left;
  if (lowest === undefined) return;
  const ancestor = await findAncestor(watch, lowest.number);
  if (ancestor === "replaced") {
    deep.nextAt = clock.now();
    return;
  }
  const votes = await askEndpoints(network.rpc.endpoints, left);
  const shown = left.filter((block) => votes.some(({ present }) => present.has(block)));
  if (shown.length > 0) {
    await unmarkLeft(ledger, { network: network.network, blocks: shown });
    logger.warn({ network: network.network, blocks: shown.length }, nodesDisagree);
    return;
  }
  const awaited = votes.filter((vote) => isSilentVoter(watch, vote, left.length));
  const finalHeight = head - BigInt(network.finalAfter);
  const deepEnough = left.filter(
    (block) =>
      block.number <= finalHeight &&
      votes.some(({ absent }) => absent.has(block)) &&
      awaited.every(({ absent }) => absent.has(block)),
  );
  await takeBackFinal(watch, deepEnough, ancestor);
  await forgetLeft(ledger, { network: network.network, blocks: deepEnough });
}

/** The newest final block of ours below a height, if it stands. */
async function findAncestor(
  { context, network }: WatchContext,
  below: number,
): Promise<number | "replaced"> {
  const wanted = { network: network.network, below, limit: 1 };
  const [block] = await findFinalBlocks(context.ledger, wanted);
  if (block === undefined) return Math.max(0, below - Number(maxSearchedBlocks));
  const { absent } = await compareBlocks(network.rpc, [block]);
  if (absent.length === 0) return block.number;
  await markLeft(context.ledger, { network: network.network, blocks: absent });
  return "replaced";
}

/** Blocks that an endpoint shows, and those that it has replaced. */
interface BlockVote {
  endpoint: RpcEndpointHandle;
  present: Set<KnownBlock>;
  absent: Set<KnownBlock>;
  /** The reason why it is silent about the others. */
  error: RpcError;
}

function askEndpoints(
  endpoints: readonly RpcEndpointHandle[],
  blocks: readonly KnownBlock[],
): Promise<BlockVote[]> {
  return Promise.all(endpoints.map((endpoint) => vote(endpoint, blocks)));
}

async function vote(
  endpoint: RpcEndpointHandle,
  blocks: readonly KnownBlock[],
): Promise<BlockVote> {
  const present = new Set<KnownBlock>();
  const absent = new Set<KnownBlock>();
  const details = "it does not show whether final blocks stand";
  let error: RpcError = endpointProblem(endpoint, { kind: "behind", details });
  for (let start = 0; start < blocks.length; start += blocksAtOnce) {
    try {
      const part = await compareBlocks(endpoint, blocks.slice(start, start + blocksAtOnce));
      for (const block of part.present) present.add(block);
      for (const block of part.absent) absent.add(block);
    } catch (fault) {
      if (!(fault instanceof RpcError)) throw fault;
      error = fault;
    }
  }
  return { endpoint, present, absent, error };
}

/** Whether an endpoint is silent about some of the blocks, and may still answer. */
function isSilentVoter(
  { context, network }: WatchContext,
  { endpoint, present, absent, error }: BlockVote,
  count: number,
): boolean {
  const subjects = ["final blocks"];
  if (present.size + absent.size < count) {
    return isAwaited(context, { network, endpoint, subjects, error });
  }
  noteAnswer(endpoint, subjects);
  return false;
}
