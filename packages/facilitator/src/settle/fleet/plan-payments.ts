import type { SingleFlight } from "@coinslot/concurrency";
import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import { claimOf } from "../claim-of.ts";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import type { KnownQueues } from "../plan/known-queue.ts";
import { type Able, canSettle } from "./ability.ts";
import type { HandOver } from "./hand-over.ts";
import type { ReceivedPayments } from "./hand-over-message.ts";

/** The payments that one process plans, and the way to the other processes. */
interface PlannedPayments extends Able {
  context: Pick<SettlementContext, "simulationCache">;
  network: Pick<SettlementNetwork, "maxInFlight" | "network">;
  queues: KnownQueues;
  planning: Pick<SingleFlight, "trigger">;
  handOver: Pick<HandOver, "offer">;
  sweep: { isDue: boolean };
}

/**
 * Plans a payment that has been queued here. Without a relayer that can pay, another process does.
 */
export function planQueued(payments: PlannedPayments, queued: OrderedPayment): void {
  const { queues, planning, handOver, context } = payments;
  const { id, settlesAlone } = queued.payment;
  if (!canSettle(payments)) {
    const simulation = context.simulationCache.share(claimOf(queued));
    if (handOver.offer([{ id, simulation }])) return;
  }
  queues[settlesAlone ? "alone" : "shared"].add(queued);
  planning.trigger();
}

/** Plans a payment that was queued before: its request is taken up here, or was interrupted. */
export function planResumed(payments: PlannedPayments, paymentId: string): void {
  const { queues, planning, handOver } = payments;
  if (!canSettle(payments) && handOver.offer([{ id: paymentId }])) return;
  queues.adopt([paymentId]);
  planning.trigger();
}

/** Plans payments that another process has handed over. */
export function planHandedOver(
  payments: PlannedPayments,
  { ids, simulations }: ReceivedPayments,
): void {
  const { simulationCache } = payments.context;
  for (const each of simulations) simulationCache.learn(payments.network.network, each);
  planAdopted(payments, ids);
}

/** Plans payments that are queued already. */
export function planAdopted(
  { queues, planning }: PlannedPayments,
  paymentIds: readonly string[],
): void {
  queues.adopt(paymentIds);
  planning.trigger();
}

/** Plans, after a sweep for payments that no process settles. */
export function planSweep({ sweep, planning }: PlannedPayments): void {
  sweep.isDue = true;
  planning.trigger();
}

/** Hands over all that waits here, where this process cannot settle it and another one can. */
export function passOn(payments: PlannedPayments): void {
  const { queues, handOver } = payments;
  if (canSettle(payments)) return;
  const ids = queues.ids();
  if (ids.length > 0 && handOver.offer(ids.map((id) => ({ id })))) queues.clear();
}
