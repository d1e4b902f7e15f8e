import { sleep } from "@coinslot/chain";
import type { ChainContext } from "../chain-context.ts";
import { judgeFailure } from "../history/judge-failure.ts";
import type { Segment } from "../history/plan-segments.ts";
import type { BlockId } from "../store/block-id.ts";
import type { BlockRange } from "../store/coverage.ts";
import { readWindow } from "../store/window.ts";
import { chooseRange } from "./choose-range.ts";
import { ContradictionError } from "./contradiction-error.ts";
import { createSecondReaders, type SecondReaders } from "./second-readers.ts";
import { maxMends, type Verdict, type VerificationQuestion, verifyRange } from "./verify-range.ts";
import { writeVerdict } from "./write-verdict.ts";

/**
 * The readings of a range do not agree, and no proof decides. It stays seen, and is tried again.
 */
export class DisputedRangeError extends Error {
  override readonly name = "DisputedRangeError";

  constructor({ from, next }: BlockRange, cause: unknown) {
    super(`Blocks ${from} to ${next - 1} are disputed: their readings do not agree`, { cause });
  }
}

/** Consecutive failures before a range is left for later. */
const attempts = 12;
/** Number of disputed ranges at which the whole segment is left for later. */
const maxDisputes = 4;
const pauseMs = 100;
/**
 * Required number of empty answers where no known transfer bounds a range; each proves another one
 * of its last blocks.
 */
const readingsOfOpenEnd = 5;

/**
 * Verifies a segment, range by range, and mends differences. A range that cannot be decided is
 * passed over, so that the blocks above it do not wait. Then it is thrown as a
 * `DisputedRangeError`.
 *
 * `agreed`: the block that most endpoints have, not below the segment. Later ones may be of a fork
 * of one endpoint, and only that one would be heard.
 */
export async function verifySegment(
  context: ChainContext,
  segment: Segment,
  { agreed, signal }: { agreed: BlockId; signal: AbortSignal },
): Promise<void> {
  const { chain, clock, logger, rewrites } = context;
  const [token] = segment.tokens;
  if (token === undefined) return;
  const readers = createSecondReaders(context, token);
  const started = rewrites.count;
  const disputes: DisputedRangeError[] = [];
  let { from } = segment;
  const { maxBlocksPerRequest } = chain;
  let span = maxBlocksPerRequest;
  let reach = maxBlocksPerRequest;
  let failures = 0;
  /** Consecutive mends of a range that is not decided yet. */
  let begun = 0;
  /** Whether an endpoint has answered for the range, and did not agree. */
  let isAnswered = false;
  let cause: unknown;
  while (from < segment.next && disputes.length < maxDisputes) {
    signal.throwIfAborted();
    if (rewrites.count !== started) return;
    const [base] = await readWindow(context.database.kysely, chain.chainId);
    if (base === undefined || base.number < agreed.number) return;
    const next = Math.min(segment.next, readers.begin(from));
    const chosen = await chooseRange(context, { ...segment, from, next }, { span, reach });
    const width = chosen.range.next - chosen.range.from;
    if (failures >= attempts) {
      disputes.push(new DisputedRangeError(chosen.range, cause));
      from = chosen.range.next;
      failures = 0;
      begun = 0;
      isAnswered = false;
      continue;
    }
    try {
      const verdict = await readAgain(context, readers, {
        segment,
        chosen,
        anchor: agreed,
        signal,
      });
      if (rewrites.count !== started) return;
      const written = { segment, chosen, base, verdict, started, signal };
      if (!(await writeVerdict(context, written))) return;
      if (verdict.kind === "agreed") {
        from = chosen.range.next;
        failures = 0;
        begun = 0;
        isAnswered = false;
        readers.agreed();
        span = Math.min(maxBlocksPerRequest, 2 * span);
        reach = Math.min(maxBlocksPerRequest, 2 * reach);
        continue;
      }
      // Endpoints that do not agree, and their providers' limits of requests, need time.
      await sleep(clock, pauseMs, signal);
      const isMended = verdict.kind === "begun" && verdict.differences.length > 0;
      if (isMended && ++begun < attempts + width / maxMends) continue;
      failures += 1;
      isAnswered = true;
      readers.refused({ isContradiction: true });
      // A single block is decided by its proof: the range shrinks until it is one. Its known end
      // stays within reach.
      const isStuck = verdict.kind === "deceptive" || failures >= 2 * context.pool.endpoints.length;
      if (isStuck) {
        span = Math.max(1, Math.floor(width / 2));
        if (width > 1) failures = 0;
      }
    } catch (error) {
      signal.throwIfAborted();
      const isContradiction = error instanceof ContradictionError;
      const kind = isContradiction ? "ask-less" : judgeFailure(error).kind;
      if (kind === "give-up") throw error;
      cause = error;
      failures += 1;
      // Endpoints that do not answer dispute nothing.
      if (kind === "wait") {
        if (readers.isSilence(error) || (failures >= attempts && !isAnswered)) throw error;
      } else {
        isAnswered = true;
        readers.refused({ isContradiction });
      }
      // A smaller range is answered more easily, by fewer requests, for any reason of the failure.
      span = Math.max(1, Math.floor(width / 2));
      if (!isContradiction) reach = Math.min(maxBlocksPerRequest, 2 * span);
      logger.warn({ chain: chain.name, ...chosen.range, error }, "A second reading failed");
      await sleep(clock, pauseMs, signal);
    }
  }
  const [first] = disputes;
  if (first !== undefined) throw first;
}

async function readAgain(
  context: ChainContext,
  readers: SecondReaders,
  question: VerificationQuestion,
): Promise<Verdict> {
  const { range, hasKnownEnd } = question.chosen;
  const isOpen = !hasKnownEnd && range.next - range.from > 1;
  let verdict: Verdict | undefined;
  for (let reading = 0; reading < (isOpen ? readingsOfOpenEnd : 1); reading++) {
    const endpoint = readers.next(isOpen);
    if (endpoint === undefined) throw new Error("The chain has no endpoint");
    const isContradicted = readers.isContradicted();
    verdict = await verifyRange(context, endpoint, { ...question, isContradicted, reading });
    // The added transfers are true, but may not be all: an answer that was cut adds its beginning.
    if (isOpen && verdict.kind === "agreed" && verdict.differences.length > 0)
      return { ...verdict, kind: "begun" };
    if (verdict.kind !== "agreed" || verdict.differences.length > 0) return verdict;
  }
  return verdict ?? { kind: "unreliable", differences: [] };
}
