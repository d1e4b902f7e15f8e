import { createSingleFlight } from "@coinslot/concurrency";
import { healClock, pruneDeliveries } from "@coinslot/storage";
import { maxRetryDelayMs } from "@coinslot/webhooks";
import { sql } from "kysely";
import { claimMs } from "./start-delivering.ts";
import type { WebhooksContext } from "./start-webhooks.ts";
import { forgetFinal, forgetReverted, forgetUnsent } from "./told-transfers.ts";

const pauseMs = 15_000;
const dayMs = 86_400_000;
/** A database's clock that falls back by this is put back. Corrections are less. */
const toleranceMs = 2_000;
/** Rows of one step: few enough to delay no writer. */
const limit = 500;

/**
 * Forgets what has ended long ago. Makes everything due where the database's clock was put back: it
 * would wait for that time to come again.
 */
export function keepOutbox(
  { outbox, clock, logger }: WebhooksContext,
  endpoints: readonly string[],
): { stop(): Promise<void> } {
  let cancelTimer: (() => void) | undefined;
  let isStopped = false;
  /** Difference of both clocks. Before the first look, any may have been put back. */
  let offsetMs = Number.POSITIVE_INFINITY;

  async function look(): Promise<void> {
    const { rows } = await sql<{ now: number }>`
      select ${outbox.dialect.nowMs()} as now
    `.execute(outbox.db);
    const newOffsetMs = (rows[0]?.now ?? 0) - clock.now();
    const isPutBack = newOffsetMs < offsetMs - toleranceMs;
    offsetMs = newOffsetMs;
    for (const endpoint of endpoints)
      if (isPutBack) await healClock(outbox, { endpoint, claimMs, waitMs: maxRetryDelayMs });
    const ages = { deliveredMs: 30 * dayMs, deadMs: 90 * dayMs, limit };
    let isMore = true;
    while (isMore && !isStopped) isMore = await pruneDeliveries(outbox, ages);
    for (const forget of [forgetFinal, forgetReverted, forgetUnsent]) {
      isMore = true;
      while (isMore && !isStopped)
        isMore = await outbox.write((transaction) =>
          forget(transaction, outbox.dialect, { keptMs: 30 * dayMs, limit }),
        );
    }
  }

  const working = createSingleFlight(async () => {
    try {
      await look();
    } catch (error) {
      logger.warn({ error }, "The outbox could not be kept; retrying");
    }
    if (!isStopped) cancelTimer = clock.setTimer(working.trigger, pauseMs);
  });
  working.trigger();
  return {
    async stop() {
      isStopped = true;
      cancelTimer?.();
      await working.stop();
      cancelTimer?.();
    },
  };
}
