import { createSingleFlight } from "@coinslot/concurrency";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import {
  changeStop,
  readStops,
  type StopWrites,
  stopChannel,
} from "../ledger/maintenance/stops.ts";
import type { Logger } from "../logger.ts";
import type { SettlementMetrics } from "../settle/metrics.ts";
import type { StopChange, StopReport } from "./stop.ts";
import type { StopBoard } from "./stop-board.ts";

/** Keeps a process's board as the ledger has the switches. */
export interface StopFollower {
  /** Reads the switches. Logs a failure, and the board stays as it is. */
  refresh(): Promise<void>;
  /**
   * Writes a change. Once it resolves, this process obeys it.
   *
   * @param writes the ledger of a command, whose writes have more in their transaction
   */
  change(change: StopChange, writes?: StopWrites): Promise<StopReport>;
  stop(): Promise<void>;
}

/**
 * Reads the switches, then follows them: by a notification at once, and with each heartbeat, by
 * `refresh`, where a notification was lost.
 *
 * The racer is a read that began before a change: its older rows must not replace newer ones. One
 * read runs at a time, and a change waits for one that begins after it.
 */
export async function followStops(options: {
  ledger: LedgerContext;
  board: StopBoard;
  metrics: SettlementMetrics;
  logger: Logger;
}): Promise<StopFollower> {
  const { ledger, board, metrics, logger } = options;
  const reading = createSingleFlight(async () => {
    const stops = await readStops(ledger);
    if (!board.replace(stops)) return;
    metrics.stops.reset();
    for (const { kind, name } of stops) metrics.stops.set({ kind, name }, 1);
    if (stops.length === 0) logger.warn({}, "no stop switch is set any more");
    else logger.warn({ stops }, "stop switches are set: these new payments are refused");
  });

  async function refresh(): Promise<void> {
    try {
      await reading.next();
    } catch (err) {
      logger.warn({ err }, "the stop switches could not be read; the last known ones hold");
    }
  }

  const unlisten = await ledger.listen(stopChannel, () => void refresh());
  try {
    await reading.next();
  } catch (error) {
    await unlisten();
    throw error;
  }
  return {
    refresh,
    async change(change, writes = ledger) {
      const report = await changeStop(writes, change);
      await reading.next();
      return report;
    },
    async stop() {
      await unlisten();
      await reading.stop();
    },
  };
}
