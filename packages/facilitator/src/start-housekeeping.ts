import type { Network } from "@coinslot/protocol";
import { claimByOperator } from "./channels/operators/claim-by-operator.ts";
import type { Channels } from "./channels/start-channels.ts";
import { createOperatorReads, type OperatorReads } from "./ledger/operator-reads.ts";
import { OperationRefusedError } from "./operators/operation-refused-error.ts";
import type { OperatorParts } from "./operators/perform-operation.ts";
import { serveOperators } from "./operators/serve-operators.ts";
import { createSellerView } from "./reads/seller-view.ts";
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
import { startVisits } from "./visits/start-visits.ts";
import { startWebhooks } from "./webhooks/start-webhooks.ts";

/** The parts of a process beside its payments. */
export interface Housekeeping {
  readonly operatorReads: OperatorReads;
  readonly operatorParts: OperatorParts;
  readonly stopFollower: StopFollower;
  readonly refunds: RefundsWorker;
}

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
    | "visits"
    | "health"
    | "chains"
    | "onReplaced"
  >,
  parts: {
    context: SettlementContext;
    settlements: ReadonlyMap<Network, NetworkSettlement>;
    channels: Channels | undefined;
    /** As `Database.verify`. */
    verify: () => Promise<void>;
    /** Registers the close function of a part, as soon as it runs. */
    begun: (end: () => Promise<void>) => void;
  },
): Promise<Housekeeping> {
  const { ledgerUrl, settings, retention: times, operators: listener } = options;
  const { stops: board, health, onReplaced } = options;
  const { context, settlements, channels, verify, begun } = parts;
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
  const visits = startVisits(context, options.visits);
  begun(() => visits.stop());
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
  const operatorParts: OperatorParts = {
    context: {
      ledger,
      seller: {
        stops: stopFollower,
        refunds: refundMethods(refunds),
        wakeRefunds: () => refunds.wake(),
        claimChannels: claimByOperator(channels, [...settlements.keys()]),
        async refundChannel(network, asked) {
          if (channels?.of(network) !== undefined) return channels.sales.refundFor(network, asked);
          const message = "This seller has no channels there";
          throw new OperationRefusedError("no_channels", message);
        },
        view: createSellerView({
          chains: options.chains,
          settlements,
          metrics,
          ledgerUrl,
          obstacle: health.obstacle,
        }),
      },
    },
    read: operatorReads.run,
  };
  const operators = await serveOperators({ ledgerUrl, listener, ...operatorParts, logger });
  begun(() => operators.close());
  return { operatorReads, operatorParts, stopFollower, refunds };
}
