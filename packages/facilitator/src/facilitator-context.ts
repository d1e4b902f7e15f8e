import { type ChannelSales, FacilitatorError, type VisitBoard } from "@coinslot/protocol";
import { isDatabaseError } from "@coinslot/storage";
import type { FacilitatorConfiguration } from "./configuration/facilitator-configuration.ts";
import type { SettlementSettings } from "./configuration/settlement-options.ts";
import { type KeptEngine, openedAnew } from "./keep-engine.ts";
import type { Chain } from "./open-chain.ts";
import type { LedgerHealth } from "./ready/ledger-health.ts";
import type { SettlementMetrics } from "./settle/metrics.ts";
import type { SettlementEvent, SettlementListener } from "./settle/settlement-event.ts";
import type { Engine } from "./start-engine.ts";
import type { StopBoard } from "./stops/stop-board.ts";
import type { Verifier } from "./verify/verifier.ts";

/** Shared by the methods of a facilitator. */
export interface FacilitatorContext {
  configuration: FacilitatorConfiguration;
  settings: SettlementSettings;
  chains: readonly Chain[];
  verifier: Verifier;
  metrics: SettlementMetrics;
  listeners: Set<SettlementListener>;
  engine: KeptEngine<Engine>;
  health: LedgerHealth;
  stops: StopBoard;
  visits: VisitBoard;
  /** Filled by the engine. */
  channels: { sales: ChannelSales | undefined };
}

/** Calls every listener. One that throws changes nothing for the payment and the others. */
export function emitTo(
  listeners: ReadonlySet<SettlementListener>,
  { logger }: FacilitatorConfiguration,
  event: SettlementEvent,
): void {
  for (const listener of listeners) {
    try {
      listener(event);
    } catch (err) {
      logger.error({ err, event: event.type }, "a listener threw; its error has no effect");
    }
  }
}

/**
 * The engine, for methods that are of no use without it.
 *
 * @throws FacilitatorError when its start has failed.
 */
export async function engineOf({ engine }: FacilitatorContext): Promise<Engine> {
  try {
    return await engine.current();
  } catch (cause) {
    if (cause instanceof FacilitatorError) throw cause;
    throw new FacilitatorError("The facilitator is not ready", { kind: "unavailable", cause });
  }
}

/**
 * Works with the engine. A fault of the database is a fault of ours, and its text is for the log.
 */
export async function withEngine<Result>(
  facilitator: FacilitatorContext,
  work: (engine: Engine) => Promise<Result>,
): Promise<Result> {
  const engine = await engineOf(facilitator);
  try {
    return await work(engine);
  } catch (cause) {
    if (!isDatabaseError(cause)) {
      if (cause instanceof FacilitatorError || facilitator.engine.isWorking(engine)) throw cause;
      throw openedAnew(cause);
    }
    facilitator.health.refused(cause);
    facilitator.health.logger.error({ err: cause }, "the ledger failed");
    throw new FacilitatorError("The ledger cannot be used at the moment", {
      kind: "unavailable",
      cause,
    });
  }
}

/** As `withEngine`, for a buyer: reads of operators give way. */
export function forBuyer<Result>(
  facilitator: FacilitatorContext,
  work: (engine: Engine) => Promise<Result>,
): Promise<Result> {
  return withEngine(facilitator, (engine) => {
    engine.operatorReads.giveWay();
    return work(engine);
  });
}

/** Ends the engine, then the connections to the chains. */
export async function closeFacilitator({ engine, chains }: FacilitatorContext): Promise<void> {
  try {
    await engine.close();
  } finally {
    for (const { pool, watcher } of chains) {
      watcher.close();
      pool.close();
    }
  }
}
