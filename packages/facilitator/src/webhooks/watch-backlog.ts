import { createSingleFlight } from "@coinslot/concurrency";
import { dropLostListeners, healClock, listEndpoints } from "@coinslot/storage";
import { isReceiverId, maxRetryDelayMs } from "@coinslot/webhooks";
import { sql } from "kysely";
import type { SettlementContext } from "../settle/context.ts";
import { claimMs } from "./start-delivering.ts";

const pauseMs = 15_000;
/** A database's clock that falls back by this is put back. Corrections are less. */
const toleranceMs = 2_000;

/**
 * Keeps the metrics of what waits for each receiver of the ledger, and ends lost listeners. Makes
 * everything due where the database's clock was put back. Else it would wait for that time again.
 */
export function watchBacklog(
  {
    ledger,
    metrics,
    clock,
    logger,
  }: Pick<SettlementContext, "ledger" | "metrics" | "clock" | "logger">,
  endpoints: readonly string[],
): { stop(): Promise<void> } {
  let cancelTimer: (() => void) | undefined;
  let isStopped = false;
  /** Difference of both clocks. Before the first look, any may have been put back. */
  let offsetMs = Number.POSITIVE_INFINITY;

  async function look(): Promise<void> {
    const { rows } = await sql<{ now: number }>`
      select ${ledger.dialect.nowMs()} as now
    `.execute(ledger.db);
    const newOffsetMs = (rows[0]?.now ?? 0) - clock.now();
    const isPutBack = newOffsetMs < offsetMs - toleranceMs;
    offsetMs = newOffsetMs;
    await dropLostListeners(ledger);
    for (const endpoint of endpoints)
      if (isPutBack) await healClock(ledger, { endpoint, claimMs, waitMs: maxRetryDelayMs });
    // Those of all processes: what waits for a receiver that none serves has no other sign.
    const registered = await listEndpoints(ledger);
    for (const gauge of [metrics.webhooksPending, metrics.webhooksDead, metrics.webhooksOldest])
      gauge.reset();
    for (const { id: endpoint, isEnabled, pending, dead, oldestPendingMs = 0 } of registered) {
      if (!isEnabled || !isReceiverId(endpoint)) continue;
      metrics.webhooksPending.set({ endpoint }, pending);
      metrics.webhooksDead.set({ endpoint }, dead);
      metrics.webhooksOldest.set({ endpoint }, oldestPendingMs / 1_000);
    }
  }

  const working = createSingleFlight(async () => {
    try {
      await look();
    } catch (err) {
      logger.warn({ err }, "waiting webhooks could not be counted; retrying");
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
