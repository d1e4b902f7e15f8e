import { RpcError, type RpcRequester } from "@coinslot/chain";
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
import { compareBlocks } from "./compare-blocks.ts";
import { takeBackFinal } from "./take-back-final.ts";
import type { WatchContext } from "./watch-context.ts";

/** Blocks read in one batch. */
const blocksAtOnce = 100;

/** Times that blocks must be missing for longer, where an endpoint does not answer about them. */
const silencesBefore = 10;
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
 * endpoint without a height, or without an answer, says nothing. Where one says nothing, the blocks
 * must be missing for `silencesBefore` times as long.
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
  await decide(watch, { left, head, missingMs: now - agedAt + times.disputeMs });
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
      if (limit === 1 && (await askEndpoints(network.rpc.endpoints, replaced)).shown.length > 0) {
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
  { left, head, missingMs }: { left: readonly LeftBlock[]; head: bigint; missingMs: number },
): Promise<void> {
  const { context, network, deep } = watch;
  const { ledger, logger, clock, times } = context;
  const [lowest] = left;
  if (lowest === undefined) return;
  const ancestor = await findAncestor(watch, lowest.number);
  if (ancestor === "replaced") {
    deep.nextAt = clock.now();
    return;
  }
  const { shown, gone, isSilent } = await askEndpoints(network.rpc.endpoints, left);
  if (shown.length > 0) {
    await unmarkLeft(ledger, { network: network.network, blocks: shown });
    logger.warn({ network: network.network, blocks: shown.length }, nodesDisagree);
    return;
  }
  if (isSilent && missingMs < silencesBefore * times.disputeMs) return;
  const finalHeight = head - BigInt(network.finalAfter);
  const deepEnough = gone.filter(({ number }) => number <= finalHeight);
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

/**
 * Blocks that one endpoint at least shows, and those that one at least has replaced and none shows.
 * `isSilent`: an endpoint has not answered about one of them.
 */
async function askEndpoints(
  endpoints: readonly RpcRequester[],
  left: readonly KnownBlock[],
): Promise<{ shown: KnownBlock[]; gone: KnownBlock[]; isSilent: boolean }> {
  const shown: KnownBlock[] = [];
  const gone: KnownBlock[] = [];
  let isSilent = false;
  for (let start = 0; start < left.length; start += blocksAtOnce) {
    const blocks = left.slice(start, start + blocksAtOnce);
    const votes = await Promise.all(endpoints.map((endpoint) => vote(endpoint, blocks)));
    isSilent ||= votes.some((each) => each.present.length + each.absent.length < blocks.length);
    for (const block of blocks) {
      if (votes.some(({ present }) => present.includes(block))) shown.push(block);
      else if (votes.some(({ absent }) => absent.includes(block))) gone.push(block);
    }
  }
  return { shown, gone, isSilent };
}

async function vote(endpoint: RpcRequester, blocks: readonly KnownBlock[]) {
  try {
    return await compareBlocks(endpoint, blocks);
  } catch (error) {
    if (error instanceof RpcError) return { present: [], absent: [], refused: [] };
    throw error;
  }
}
