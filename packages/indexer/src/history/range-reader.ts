import { type Clock, type RpcEndpointHandle, type RpcPool, sleep } from "@coinslot/chain";
import type { Dialect } from "@coinslot/storage";
import type { IndexerLogger } from "../logger.ts";
import type { ChainEvidence } from "../proof/chain-evidence.ts";
import { createToleranceOfLast, type Tolerance } from "../rpc/tolerance.ts";
import type { FirstReaders } from "../verify/first-readers.ts";
import type { EndpointTrust } from "./endpoint-trust.ts";
import { judgeFailure } from "./judge-failure.ts";
import type { Segment } from "./plan-segments.ts";
import type { RangeSize } from "./range-size.ts";
import { type RangeAnswer, readBlockByReceipts, readRange } from "./read-range.ts";

export interface RangeReaderOptions {
  chain: string;
  pool: Pick<RpcPool, "onEndpoint">;
  dialect: Dialect;
  size: RangeSize;
  trust: EndpointTrust;
  evidence: ChainEvidence;
  firstReaders: FirstReaders;
  logger: IndexerLogger;
  clock: Clock;
}

/** Reads a whole segment in one or more answers: ascending, without a gap or an overlap. */
export type RangeReader = (segment: Segment, signal: AbortSignal) => Promise<RangeAnswer[]>;

const firstPauseMs = 100;
const maxPauseMs = 10_000;

export function createRangeReader(options: RangeReaderOptions): RangeReader {
  const { pool, size, logger, clock } = options;

  return async (segment, signal) => {
    const answers: RangeAnswer[] = [];
    let from = segment.from;
    let span = segment.next - segment.from;
    let pauseMs = firstPauseMs;
    const toleranceOf = createToleranceOfLast();
    while (from < segment.next) {
      const range = { from, next: Math.min(segment.next, from + span) };
      try {
        const tolerates = toleranceOf(`${range.from} to ${range.next}`);
        const answer = await ask({ ...segment, ...range }, { tolerates, signal });
        answers.push(answer);
        from = answer.range.next;
        pauseMs = firstPauseMs;
        if (from < range.next) span = size.refused(range.next - range.from);
      } catch (error) {
        signal.throwIfAborted();
        const judgement = judgeFailure(error);
        if (judgement.kind === "give-up") throw error;
        const asked = range.next - range.from;
        if (judgement.kind === "ask-less" && asked > 1) {
          span = size.refused(asked, judgement.suggested);
          continue;
        }
        logger.warn({ chain: options.chain, ...range, error }, "A range of blocks cannot be read");
        await sleep(clock, pauseMs, signal);
        pauseMs = Math.min(2 * pauseMs, maxPauseMs);
      }
    }
    return answers;
  };

  async function ask(
    segment: Segment,
    { tolerates, signal }: { tolerates: Tolerance; signal: AbortSignal },
  ): Promise<RangeAnswer> {
    const { dialect, trust, evidence } = options;
    const { tokens, from, next } = segment;
    const range = { from, next };
    const question = { tokens, range, dialect, trust, evidence, tolerates };
    // Only endpoints that have reported a head at least as high as the range are asked for it.
    const wish = { minBlock: BigInt(next - 1), signal };
    const read = async (endpoint: RpcEndpointHandle, by: typeof readRange) => {
      const answer = await by(endpoint, question);
      options.firstReaders.note({ tokens, ...answer.range }, endpoint.endpoint);
      return answer;
    };
    try {
      const answer = await pool.onEndpoint((endpoint) => read(endpoint, readRange), wish);
      const { rows, oddities } = answer.batch;
      size.answered({ span: answer.range.next - from, transfers: rows.length });
      if (oddities.length > 0)
        logger.warn({ chain: options.chain, from, next, oddities }, "Logs that are not transfers");
      return answer;
    } catch (error) {
      const isOneBlock = next - from === 1;
      if (!isOneBlock || judgeFailure(error).kind !== "ask-less") throw error;
      return pool.onEndpoint((endpoint) => read(endpoint, readBlockByReceipts), wish);
    }
  }
}
