import type { SingleFlight } from "@coinslot/concurrency";
import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import type { KnownQueues } from "../plan/known-queue.ts";
import { type Able, canSettle } from "./ability.ts";
import type { HandOver } from "./hand-over.ts";

/** The payments that one process plans, and the way to the other processes. */
interface PlannedPayments extends Able {
  queues: KnownQueues;
  planning: Pick<SingleFlight, "trigger">;
  handOver: Pick<HandOver, "offer">;
  sweep: { isDue: boolean };
}

/**
 * Plans a payment that has been queued here. Without a relayer that can pay, another process does.
 */
export function planQueued(payments: PlannedPayments, queued: OrderedPayment): void {
  const { queues, planning, handOver } = payments;
  const { id, settlesAlone } = queued.payment;
  if (!canSettle(payments) && handOver.offer([id])) return;
  queues[settlesAlone ? "alone" : "shared"].add(queued);
  planning.trigger();
}

/** Plans a payment that was queued before: its request is taken up here, or was interrupted. */
export function planResumed(payments: PlannedPayments, paymentId: string): void {
  const { queues, planning, handOver } = payments;
  if (!canSettle(payments) && handOver.offer([paymentId])) return;
  queues.adopt([paymentId]);
  planning.trigger();
}

/** Plans payments that another process has handed over, or that are queued again. */
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
  if (ids.length > 0 && handOver.offer(ids)) queues.clear();
}
