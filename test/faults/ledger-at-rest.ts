import { setTimeout as sleep } from "node:timers/promises";
import type { ListedPayment } from "./worker-messages.ts";
import type { WorkerProcess } from "./worker-process.ts";

/** Time after the end of the faults in which payments may be under way. */
export const calmLimitMs = 45_000;
const lookMs = 200;

/** The ledger once nothing is in flight any more, or at the timeout. */
export function awaitRest(worker: WorkerProcess): Promise<ListedPayment[]> {
  return awaitLedger(worker, ({ state }) => !isUnderWay(state));
}

/** The ledger once every confirmed payment is final, or at the timeout. */
export function awaitFinality(worker: WorkerProcess): Promise<ListedPayment[]> {
  return awaitLedger(worker, ({ state, isFinal }) => state !== "confirmed" || isFinal);
}

/** Returns whether a payment in this state still waits for something to happen. */
export function isUnderWay(state: ListedPayment["state"]): boolean {
  return state === "reserved" || state === "queued" || state === "submitted";
}

async function awaitLedger(
  worker: WorkerProcess,
  isAtRest: (payment: ListedPayment) => boolean,
): Promise<ListedPayment[]> {
  const deadline = performance.now() + calmLimitMs;
  for (;;) {
    const ledger = await worker.listPayments();
    if (ledger.every(isAtRest) || performance.now() > deadline) return ledger;
    await sleep(lookMs);
  }
}
