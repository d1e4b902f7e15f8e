import { RpcClosedError, sleep } from "@coinslot/chain";
import type { ChainContext } from "../chain-context.ts";
import type { Segment } from "../history/plan-segments.ts";
import type { BlockId } from "../store/block-id.ts";
import { readChain } from "../store/chain-row.ts";
import { readChecks, updateChecks } from "../store/checks.ts";
import { readCoverage } from "../store/coverage.ts";
import { findKnownBlock } from "../store/marks.ts";
import { readWindow } from "../store/window.ts";
import { LeaseLostError } from "../store/writer-lease.ts";
import { planVerification } from "./plan-verification.ts";
import { DisputedRangeError, verifySegment } from "./verify-segment.ts";
import { voteOnFinal } from "./vote-on-final.ts";

/**
 * Reads final blocks for the second time, and mends those that were stored wrongly. It works in
 * rounds. Blocks that were indexed and final at one round's beginning are read in the next, so at
 * another time. A node that lagged or a gateway that chose badly has changed by then. Runs until
 * the signal is aborted; rejects when the writer lease is lost.
 */
export async function verifyChain(context: ChainContext, signal: AbortSignal): Promise<void> {
  const { chain, logger, clock } = context;
  let settled: Settled | undefined;
  // An earlier process may have verified blocks while one endpoint alone could be asked.
  const owed: Owed = { vote: true, from: Number.POSITIVE_INFINITY };
  while (!signal.aborted) {
    await sleep(clock, chain.verifyAfterMs, signal).catch(() => undefined);
    if (signal.aborted) return;
    try {
      const before = settled;
      settled = await readSettled(context);
      if (before !== undefined && settled !== undefined)
        await verifyOnce(context, before, { owed, signal });
    } catch (error) {
      if (signal.aborted || error instanceof RpcClosedError) return;
      if (error instanceof LeaseLostError) throw error;
      logger.warn({ chain: chain.name, error }, "A second reading failed, and is tried again");
      if (error instanceof DisputedRangeError) await tellProblem(context, error.message);
    }
  }
}

/** Votes that are due although no block is new. */
interface Owed {
  vote: boolean;
  /** About this block or a later one. */
  from: number;
}

interface Settled {
  /**
   * The count of `rewrites` at the time of reading: blocks taken back since then are passed
   * over.
   */
  count: number;
  indexed: Awaited<ReturnType<typeof readCoverage>>;
  next: number;
}

/**
 * The indexed and final blocks. Undefined while history is read, which goes first. Undefined also
 * while final blocks are doubted: replaced blocks are taken back, not mended.
 */
async function readSettled({
  chain,
  database,
  tokens,
  rewrites: { count },
}: ChainContext): Promise<Settled | undefined> {
  const { state, finalized_number } = await readChain(database, chain.chainId);
  const checks = await readChecks(database.kysely, chain.chainId);
  const isDoubted = (checks?.doubted_from ?? null) !== null;
  if (state !== "live" || isDoubted || finalized_number === null) return undefined;
  const indexed = await readCoverage(database.kysely, tokens);
  return { count, indexed, next: finalized_number + 1 };
}

async function verifyOnce(
  context: ChainContext,
  { count, indexed, next }: Settled,
  { owed, signal }: { owed: Owed; signal: AbortSignal },
): Promise<void> {
  const { chain, database, tokens, rewrites, logger, firstReaders, outvoted } = context;
  const verified = await readCoverage(database.kysely, tokens, "indexer_verified_ranges");
  const plan = (end: number) => planVerification(tokens, { indexed, verified, next: end });
  const isDue = owed.vote || next > owed.from || plan(next).length > 0;
  const newest = isDue ? await findNewestFinal(context, next - 1) : undefined;
  const agreement = newest && (await voteOnFinal(context, newest, signal));
  if (newest !== undefined && agreement !== undefined) {
    owed.vote = !agreement.isShared;
    // An outvoted endpoint may be back, and be the only one that answers. Blocks below say nothing.
    owed.from = outvoted.size > 0 ? newest.number : Number.POSITIVE_INFINITY;
  }
  const problem = agreement?.problem;
  if (problem !== undefined)
    logger.warn({ chain: chain.name, problem }, "Blocks wait for a second endpoint");
  const disputes: DisputedRangeError[] = [];
  const agreed = agreement?.agreed;
  if (agreed !== undefined)
    for (const segment of plan(Math.min(next, agreed.number + 1)).flatMap(firstReaders.split)) {
      // The next round sees blocks that were rewritten meanwhile once again.
      if (rewrites.count !== count) return;
      const dispute = await verifyUnlessDisputed(context, segment, { agreed, signal });
      if (dispute !== undefined) disputes.push(dispute);
    }
  const [first] = disputes;
  if (first !== undefined) throw first;
  await tellProblem(context, problem ?? null);
}

/** The final block with this number, or a newer one: its hash may not be known any more. */
async function findNewestFinal(
  { chain: { chainId }, database: { kysely } }: ChainContext,
  number: number,
): Promise<BlockId | undefined> {
  const known = await findKnownBlock(kysely, { chainId, number });
  if (known?.number === number) return known;
  const [base] = await readWindow(kysely, chainId);
  return base;
}

/** One range that cannot be decided does not keep the others waiting. */
async function verifyUnlessDisputed(
  context: ChainContext,
  segment: Segment,
  by: { agreed: BlockId; signal: AbortSignal },
): Promise<DisputedRangeError | undefined> {
  try {
    await verifySegment(context, segment, by);
    return undefined;
  } catch (error) {
    if (error instanceof DisputedRangeError) return error;
    throw error;
  }
}

async function tellProblem(
  { chain: { chainId }, database, lease }: ChainContext,
  problem: string | null,
): Promise<void> {
  await lease.write((transaction) =>
    updateChecks(transaction, database.dialect, { chainId, news: { problem } }),
  );
}
