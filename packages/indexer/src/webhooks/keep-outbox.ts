import { createSingleFlight } from "@coinslot/concurrency";
import { giveUpUntaken, healClock, pruneDeliveries } from "@coinslot/storage";
import { maxRetryDelayMs } from "@coinslot/webhooks";
import { sql } from "kysely";
import { claimMs } from "./start-delivering.ts";
import type { WebhooksContext } from "./start-webhooks.ts";
import { forgetFinal, forgetReverted, forgetUnsent } from "./told-transfers.ts";

const pauseMs = 15_000;
const dayMs = 86_400_000;
/** Longer than what may be replayed is kept: a replay is claimed first. */
const untakenMs = 120 * dayMs;
/** A database's clock that falls back by this is put back. Corrections are less. */
const toleranceMs = 2_000;
/** Rows of one step: few enough to delay no writer. */
const limit = 500;

/**
 * Forgets what has ended long ago, and ends what no process has claimed for long. Makes everything
 * due where the database's clock was put back: it would wait for that time to come again.
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
    await giveUp();
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

  /** A receiver may be configured in the database, and in no process that runs. */
  async function giveUp(): Promise<void> {
    while (!isStopped) {
      const given = await giveUpUntaken(outbox, { untakenMs, limit });
      if (given.size === 0) return;
      for (const [endpoint, count] of given)
        logger.error(
          { endpoint, count },
          "Webhooks are dead: no process delivers to this receiver",
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
