import type { ChainContext } from "../chain-context.ts";
import { addTransfers } from "../store/add-transfers.ts";
import { updateChain } from "../store/chain-row.ts";
import { readCoverage } from "../store/coverage.ts";
import { eventsChannel } from "../store/events.ts";
import type { KnownToken } from "../store/known-token.ts";
import { addMark } from "../store/marks.ts";
import { createEndpointTrust } from "./endpoint-trust.ts";
import { planSegments, type Segment } from "./plan-segments.ts";
import { createRangeReader } from "./range-reader.ts";
import { createRangeSize } from "./range-size.ts";
import type { RangeAnswer } from "./read-range.ts";
import { scanSegment } from "./scan-segment.ts";

export interface HistoryOptions {
  tokens: readonly KnownToken[];
  /** The first block that is not to be indexed: all below it are final. */
  next: number;
  /** Transfers from this block on are announced; undefined: none. */
  announcedFrom: number | undefined;
  /** Live goes on: its problem is not over with a range of history. */
  isBesideLive: boolean;
  signal: AbortSignal;
}

/**
 * Indexes the final blocks that tokens miss. Each range is written in one transaction. After a
 * failure the written ranges stand, and the next call goes on from there.
 */
export async function indexHistory(
  context: ChainContext,
  { tokens, next, announcedFrom, isBesideLive, signal }: HistoryOptions,
): Promise<void> {
  const { chain, database, progress } = context;
  const coverage = await readCoverage(database.kysely, tokens);
  const segments = planSegments(tokens, { coverage, next });
  if (segments.length === 0) return;

  const size = createRangeSize(chain);
  const read = createRangeReader({
    ...context,
    chain: chain.name,
    dialect: database.dialect,
    size,
    trust: createEndpointTrust(context.evidence),
  });
  progress.begin(segments.reduce((sum, segment) => sum + segment.next - segment.from, 0));
  try {
    for (const segment of segments) {
      const { requestsInFlight } = chain;
      for await (const answer of scanSegment(segment, { read, size, requestsInFlight, signal })) {
        const isAnnounced = announcedFrom !== undefined && answer.range.from >= announcedFrom;
        await writeRange(context, { segment, answer, isAnnounced, isBesideLive });
        const { range, batch } = answer;
        progress.advance({ blocks: range.next - range.from, transfers: batch.rows.length });
      }
    }
  } finally {
    progress.end();
  }
}

async function writeRange(
  { chain: { chainId, maxRewindBlocks: keep }, database, lease }: ChainContext,
  options: {
    segment: Segment;
    answer: RangeAnswer;
    isAnnounced: boolean;
    isBesideLive: boolean;
  },
): Promise<void> {
  const { segment, answer, isAnnounced, isBesideLive } = options;
  const { tokens } = segment;
  await lease.write(async (transaction) => {
    await addTransfers(transaction, database.dialect, { chainId, tokens, ...answer, isAnnounced });
    if (answer.end !== undefined)
      await addMark(transaction, database.dialect, { chainId, block: answer.end, keep });
    const news = { ...(!isBesideLive && { problem: null }), isProgress: true };
    await updateChain(transaction, database.dialect, { chainId, news });
  });
  if (isAnnounced) await database.notify(eventsChannel, "");
}
