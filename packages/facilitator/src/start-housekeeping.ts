import type { Network } from "@coinslot/protocol";
import { createOperatorReads, type OperatorReads } from "./ledger/operator-reads.ts";
import { serveOperators } from "./operators/serve-operators.ts";
import { refundMethods } from "./refunds/refund-methods.ts";
import { type RefundsWorker, startRefunds } from "./refunds/start-refunds.ts";
import type { SettlementContext } from "./settle/context.ts";
import type { NetworkSettlement } from "./settle/engine.ts";
import { startBooks } from "./start-books.ts";
import type { EngineOptions } from "./start-engine.ts";
import { startIndexBuilds } from "./start-index-builds.ts";
import { startMaintenance } from "./start-maintenance.ts";
import { startRetention } from "./start-retention.ts";
import { startSums } from "./start-sums.ts";
import { followStops, type StopFollower } from "./stops/follow-stops.ts";
import { startWebhooks } from "./webhooks/start-webhooks.ts";

/** Starts what a process does beside its payments: upkeep of the ledger, and its operator. */
export async function startHousekeeping(
  options: Pick<
    EngineOptions,
    | "ledgerUrl"
    | "settings"
    | "retention"
    | "refunds"
    | "operators"
    | "webhooks"
    | "stops"
    | "health"
    | "onReplaced"
  >,
  parts: {
    context: SettlementContext;
    settlements: ReadonlyMap<Network, NetworkSettlement>;
    /** As `Database.verify`. */
    verify: () => Promise<void>;
    /** Registers the close function of a part, as soon as it runs. */
    begun: (end: () => Promise<void>) => void;
  },
): Promise<{ operatorReads: OperatorReads; stopFollower: StopFollower; refunds: RefundsWorker }> {
  const { ledgerUrl, settings, retention: times, operators: listener } = options;
  const { stops: board, health, onReplaced } = options;
  const { context, settlements, verify, begun } = parts;
  const { ledger, metrics, logger } = context;
  const { heartbeatLeaseMs } = settings;
  const stopFollower = await followStops({ ledger, board, metrics, logger });
  begun(() => stopFollower.stop());
  const maintenance = startMaintenance({
    context,
    heartbeatLeaseMs,
    refreshStops: stopFollower.refresh,
    health,
    verify,
    onReplaced,
  });
  begun(() => maintenance.stop());
  const operatorReads = createOperatorReads(ledgerUrl, ledger);
  begun(() => operatorReads.close());
  const sums = startSums(context);
  begun(() => sums.stop());
  const books = startBooks(context);
  begun(() => books.stop());
  const retention = startRetention({ context, times, heartbeatLeaseMs });
  begun(() => retention.stop());
  const refunds = startRefunds({ context, settlements, settings: options.refunds });
  begun(() => refunds.stop());
  const indexBuilds = startIndexBuilds(context);
  begun(() => indexBuilds.stop());
  const webhooks = await startWebhooks(context, options.webhooks);
  begun(() => webhooks.stop());
  const operators = await serveOperators({
    ledgerUrl,
    listener,
    context: { ledger, seller: { stops: stopFollower, refunds: refundMethods(refunds) } },
    read: operatorReads.run,
    logger,
  });
  begun(() => operators.close());
  return { operatorReads, stopFollower, refunds };
}
