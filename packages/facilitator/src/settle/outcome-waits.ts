import type { Clock } from "@coinslot/chain";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import type { ConcludedPayment } from "../ledger/payments/ledger-payment.ts";
import { getConcluded } from "../ledger/queries/list-payments.ts";

/** The reservation whose outcome is awaited, and the bound of the wait. */
export interface WaitOptions {
  token: string | undefined;
  timeoutMs: number;
  isResumed?: boolean;
}

/** The callers of this process that wait, by payment. */
export interface Waits {
  ledger: LedgerContext;
  waiters: Map<string, Set<Waiter>>;
}

/** A caller that waits for the outcome of a payment. */
export interface Waiter {
  /**
   * Of its reservation. A payment that failed or was released may be reserved again for another.
   */
  token: string | undefined;
  isResumed: boolean;
  end(payment: ConcludedPayment | undefined | Promise<ConcludedPayment | undefined>): void;
}

/** Resolves as `OutcomeNotifier.wait`. */
export function waitFor(
  { ledger, clock, waiters }: Waits & { clock: Clock },
  paymentId: string,
  options: WaitOptions,
): Promise<ConcludedPayment | undefined> {
  const { token, timeoutMs, isResumed = false } = options;
  return new Promise((resolve, reject) => {
    const cancel = clock.setTimer(() => {
      forget(waiters, paymentId, waiter);
      getConcluded(ledger, [paymentId]).then(
        ([payment]) => resolve(payment && isFor(waiter, payment) ? payment : undefined),
        reject,
      );
    }, timeoutMs);
    const waiter: Waiter = {
      token,
      isResumed,
      end(payment) {
        cancel();
        resolve(payment);
      },
    };
    const waiting = waiters.get(paymentId);
    if (waiting) waiting.add(waiter);
    else waiters.set(paymentId, new Set([waiter]));
  });
}

export function forget(waiters: Waits["waiters"], paymentId: string, waiter: Waiter): void {
  const waiting = waiters.get(paymentId);
  waiting?.delete(waiter);
  if (waiting?.size === 0) waiters.delete(paymentId);
}

/**
 * Ends all waits that have begun by now, by the payments' current state, or by the ledger's fault.
 */
export async function endWaits({ ledger, waiters }: Waits): Promise<void> {
  const waiting = [...waiters];
  waiters.clear();
  const ids = waiting.map(([id]) => id);
  const reading = getConcluded(ledger, ids);
  for (const [id, ended] of waiting) {
    for (const waiter of ended) {
      const current = reading.then((payments) => payments.find((payment) => payment.id === id));
      waiter.end(
        current.then((payment) => (payment && isFor(waiter, payment) ? payment : undefined)),
      );
    }
  }
  await Promise.allSettled([reading]);
}

/** True if a payment stands as it does by the waiter's own reservation. */
export function isFor({ token }: Waiter, payment: ConcludedPayment): boolean {
  return token === undefined || token === payment.token;
}
