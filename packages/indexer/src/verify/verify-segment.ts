import { type RpcEndpointHandle, sleep } from "@coinslot/chain";
import type { Transaction } from "kysely";
import type { ChainContext } from "../chain-context.ts";
import { judgeFailure } from "../history/judge-failure.ts";
import type { Segment } from "../history/plan-segments.ts";
import { readChain } from "../store/chain-row.ts";
import { updateChecks } from "../store/checks.ts";
import { type BlockRange, coverRange, readCoverage } from "../store/coverage.ts";
import { EVENTS_CHANNEL } from "../store/events.ts";
import type { KnownToken } from "../store/known-token.ts";
import { mendBlock } from "../store/mend-block.ts";
import type { IndexerSchema } from "../store/schema.ts";
import { readWindow } from "../store/window.ts";
import { chooseRange, type VerificationRange } from "./choose-range.ts";
import { type Verdict, type VerificationQuestion, verifyRange } from "./verify-range.ts";

/** The readings of a range do not agree, and no proof decides. It stays seen, and is tried again. */
export class DisputedRangeError extends Error {
  override readonly name = "DisputedRangeError";

  constructor({ from, next }: BlockRange, cause: unknown) {
    super(`Blocks ${from} to ${next - 1} are disputed: their readings do not agree`, { cause });
  }
}

/** Failures in a row before a range is left for later. */
const ATTEMPTS = 12;
const PAUSE_MS = 100;
/** Where no known transfer bounds a range, an empty answer has to come so many times. */
const READINGS_OF_OPEN_END = 3;

/** Verifies a segment, range by range, and mends what differs. Throws a `DisputedRangeError`. */
export async function verifySegment(
  context: ChainContext,
  segment: Segment,
  signal: AbortSignal,
): Promise<void> {
  const { chain, clock, logger, rewrites } = context;
  // The first of the list is asked first when a range is read for the first time.
  const endpoints = [...context.pool.endpoints].reverse();
  const started = rewrites.count;
  let { from } = segment;
  let span = chain.maxBlocksPerRequest;
  let turn = 0;
  let failures = 0;
  let cause: unknown;
  while (from < segment.next) {
    signal.throwIfAborted();
    if (rewrites.count !== started) return;
    const [anchor] = await readWindow(context.database.kysely, chain.chainId);
    if (anchor === undefined || anchor.number < segment.next - 1) return;
    const chosen = await chooseRange(context, { ...segment, from }, span);
    const width = chosen.range.next - chosen.range.from;
    if (failures >= ATTEMPTS) throw new DisputedRangeError(chosen.range, cause);
    try {
      const nextEndpoint = () => endpoints[turn++ % endpoints.length];
      const verdict = await readAgain(context, nextEndpoint, { segment, chosen, anchor, signal });
      if (rewrites.count !== started) return;
      await writeVerdict(context, { segment, chosen, verdict });
      if (verdict.kind === "agreed") {
        from = chosen.range.next;
        failures = 0;
        span = Math.min(chain.maxBlocksPerRequest, 2 * span);
        continue;
      }
      failures += 1;
      // A block alone is decided by its proof: less and less is asked for until it is.
      const isStuck = verdict.kind === "deceptive" || failures >= 2 * endpoints.length;
      if (isStuck) {
        span = Math.max(1, Math.floor(width / 2));
        if (width > 1) failures = 0;
      }
    } catch (error) {
      signal.throwIfAborted();
      const judgement = judgeFailure(error);
      if (judgement.kind === "give-up") throw error;
      cause = error;
      failures += 1;
      if (judgement.kind === "ask-less") span = Math.max(1, Math.floor(width / 2));
      logger.warn({ chain: chain.name, ...chosen.range, error }, "A second reading failed");
      await sleep(clock, PAUSE_MS, signal);
    }
  }
}

async function readAgain(
  context: ChainContext,
  nextEndpoint: () => RpcEndpointHandle | undefined,
  question: VerificationQuestion,
): Promise<Verdict> {
  const { range, hasKnownEnd } = question.chosen;
  const isOpen = !hasKnownEnd && range.next - range.from > 1;
  let verdict: Verdict | undefined;
  for (let reading = 0; reading < (isOpen ? READINGS_OF_OPEN_END : 1); reading++) {
    const endpoint = nextEndpoint();
    if (endpoint === undefined) throw new Error("The chain has no endpoint");
    verdict = await verifyRange(context, endpoint, question);
    if (verdict.kind !== "agreed" || verdict.differences.length > 0) return verdict;
  }
  return verdict ?? { kind: "unreliable", differences: [] };
}

/** Writes what a second reading found, in one transaction: from then on the range is verified. */
async function writeVerdict(
  { chain, database, pen, evidence, logger, onRepair }: ChainContext,
  { segment, chosen, verdict }: { segment: Segment; chosen: VerificationRange; verdict: Verdict },
): Promise<void> {
  const { chainId } = chain;
  const { tokens } = segment;
  const { dialect } = database;
  const { differences, kind } = verdict;
  const isWritten = await pen.write(async (transaction) => {
    // A process of another release may have taken blocks back, and knows nothing of second readings.
    if (!(await isIndexed(transaction, tokens, chosen.range))) return false;
    const { announced_from } = await readChain({ kysely: transaction }, chainId);
    for (const { block, truth } of differences) {
      const isAnnounced = announced_from !== null && block.number >= announced_from;
      await mendBlock(transaction, dialect, { chainId, tokens, block, truth, isAnnounced });
    }
    const proofs = evidence.receipts === "unknown" ? undefined : evidence.receipts;
    const news = { repairedBlocks: differences.length, ...(proofs && { proofs }) };
    await updateChecks(transaction, dialect, { chainId, news });
    if (kind !== "agreed") return true;
    for (const { id } of tokens)
      await coverRange(transaction, id, chosen.range, "indexer_verified_ranges");
    return true;
  });
  if (!isWritten || differences.length === 0) return;
  await database.notify(EVENTS_CHANNEL, "");
  for (const { block } of differences) {
    const repair = {
      chain: chain.name,
      tokens: tokens.map(({ token }) => token),
      block: block.number,
    };
    logger.error(repair, "A block was stored wrongly, and is mended");
    onRepair(repair);
  }
}

/** Whether a range still is indexed, of each token. */
async function isIndexed(
  transaction: Transaction<IndexerSchema>,
  tokens: readonly KnownToken[],
  { from, next }: BlockRange,
): Promise<boolean> {
  const coverage = await readCoverage(transaction, tokens);
  return tokens.every(({ id }) =>
    coverage.get(id)?.some((range) => range.from <= from && range.next >= next),
  );
}
