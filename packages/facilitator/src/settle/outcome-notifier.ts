import type { Clock } from "@coinslot/chain";
import { createSingleFlight } from "@coinslot/concurrency";
import type { Hex } from "@coinslot/protocol";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import type { ConcludedPayment } from "../ledger/payments/ledger-payment.ts";
import { channelOf } from "../ledger/process-id.ts";
import { getConcluded } from "../ledger/queries/list-payments.ts";
import type { Logger } from "../logger.ts";
import { announceOutcome, countIncome } from "./announce-outcome.ts";
import { hasOutcome } from "./has-outcome.ts";
import type { SettlementMetrics } from "./metrics.ts";
import { endWaits, forget, isFor, type WaitOptions, type Waits, waitFor } from "./outcome-waits.ts";
import { pollWaits } from "./poll-waits.ts";
import type { SettlementEvent } from "./settlement-event.ts";

export interface OutcomeNotifierOptions {
  ledger: LedgerContext;
  clock: Clock;
  logger: Logger;
  metrics: SettlementMetrics;
  emit: (event: SettlementEvent) => void;
  /**
   * Interval between reads of the ledger for outcomes whose message was lost. Those that have
   * been waited for since the last one are read.
   */
  pollMs: number;
}

/** Waits for outcomes, and publishes them in this process and to the others. */
export interface OutcomeNotifier {
  /**
   * Returns the payment once it has an outcome, or its current state when the time is over.
   * `undefined`: there is no such payment, or another reservation than `token` has it, or had it
   * last. Without a token, the outcome of any reservation counts. A payment that was not queued by
   * this call may have ended before it: `isResumed`.
   */
  wait(paymentId: string, options: WaitOptions): Promise<ConcludedPayment | undefined>;
  /** Follows a payment for its events, also after the last waiter has gone. */
  follow(paymentId: string): void;
  /** Called with the payments whose outcome this process has recorded, in their current state. */
  publish(payments: readonly ConcludedPayment[]): void;
  /** Called with payments that are being broadcast. */
  started(payments: readonly Pick<ConcludedPayment, "authorization">[], transactionHash: Hex): void;
  /** Ends. Each remaining waiter gets the payment's current state, or the fault of its read. */
  stop(): Promise<void>;
}

const channel = "coinslot_outcomes";
/** Ids in one message: PostgreSQL takes 8,000 bytes, an id has 44. */
const idsPerMessage = 150;

/** The payments that this process waits for. */
interface Notifier extends OutcomeNotifierOptions, Waits {
  followed: Set<string>;
  /** Payments to be read from the ledger. */
  changed: Set<string>;
}

/** Creates the notifier of one process. */
export async function createOutcomeNotifier(
  options: OutcomeNotifierOptions,
): Promise<OutcomeNotifier> {
  const { ledger, clock, logger, emit, pollMs } = options;
  const notifier: Notifier = {
    ...options,
    waiters: new Map(),
    followed: new Set(),
    changed: new Set(),
  };
  const { waiters, followed } = notifier;
  const waiting = () => [...waiters.keys(), ...followed];
  const reading = createSingleFlight(() => readChanged(notifier));

  const stopListening = await listenTo(ledger, (payload) => {
    // Without a payload the connection was lost for a while: anything may have happened.
    const ids = payload === undefined ? waiting() : payload.split(",");
    markChanged(ids.filter((id) => waiters.has(id) || followed.has(id)));
  });
  const mayHaveEnded = (id: string) =>
    [...(waiters.get(id) ?? [])].some(({ isResumed }) => isResumed);
  const stopPolls = pollWaits({ clock, pollMs, waiting, mayHaveEnded, onOverdue: markChanged });

  function markChanged(ids: readonly string[]): void {
    if (ids.length === 0) return;
    for (const id of ids) notifier.changed.add(id);
    reading.trigger();
  }

  return {
    wait: (paymentId, options) => waitFor(notifier, paymentId, options),
    follow(paymentId) {
      followed.add(paymentId);
    },
    publish(payments) {
      for (const payment of payments) {
        countIncome(notifier, payment);
        conclude(notifier, payment, { isOwn: true });
      }
      for (const [channel, paymentIds] of idsByChannel(ledger.processId, payments)) {
        for (let start = 0; start < paymentIds.length; start += idsPerMessage) {
          const ids = paymentIds.slice(start, start + idsPerMessage).join(",");
          // Hints only: a process that misses one polls the ledger.
          ledger.notify(channel, ids).catch((error: unknown) => {
            logger.warn({ err: error }, "other processes could not be notified of outcomes");
          });
        }
      }
    },
    started(payments, transactionHash) {
      for (const { authorization } of payments) {
        emit({ type: "settle_started", authorization, transactionHash });
      }
    },
    async stop() {
      stopPolls();
      await reading.stop();
      // Remaining waiters get the current state. Another process, or the next start, goes on.
      // In rounds: a caller may begin to wait during a read, whose rows are then too old for it.
      while (waiters.size > 0) await endWaits(notifier);
      await stopListening();
    },
  };
}

/** Listens to the channel of all processes, and to that of this one. */
async function listenTo(
  ledger: LedgerContext,
  handle: (payload: string | undefined) => void,
): Promise<() => Promise<void>> {
  const own = channelOf(channel, ledger.processId);
  const end = await ledger.listen(channel, handle);
  if (own === undefined) return end;
  try {
    const endOwn = await ledger.listen(own, handle);
    return async () => void (await Promise.all([end(), endOwn()]));
  } catch (error) {
    await end();
    throw error;
  }
}

/**
 * The payments for each channel. The process whose request holds a payment is notified, and no
 * process of its own payments. All are where no request holds it, or one of an older release does.
 */
function idsByChannel(
  processId: string,
  payments: readonly ConcludedPayment[],
): ReadonlyMap<string, string[]> {
  const byChannel = new Map<string, string[]>();
  for (const { id, owner } of payments) {
    if (owner === processId) continue;
    const name = (owner && channelOf(channel, owner)) ?? channel;
    const ids = byChannel.get(name);
    if (ids) ids.push(id);
    else byChannel.set(name, [id]);
  }
  return byChannel;
}

async function readChanged(notifier: Notifier): Promise<void> {
  const ids = notifier.changed;
  notifier.changed = new Set();
  const { waiters } = notifier;
  // Only of these do the rows decide who is lost: a later waiter's reservation may be newer.
  const waiting = new Map([...ids].map((id) => [id, [...(waiters.get(id) ?? [])]]));
  try {
    for (const payment of await getConcluded(notifier.ledger, [...ids])) {
      conclude(notifier, payment, { isOwn: false });
      for (const waiter of waiting.get(payment.id) ?? []) {
        if (isFor(waiter, payment)) continue;
        forget(waiters, payment.id, waiter);
        waiter.end(undefined);
      }
    }
  } catch (error) {
    notifier.logger.warn({ err: error }, "outcomes could not be read");
    for (const id of ids) notifier.changed.add(id);
  }
}

/**
 * Ends the waits of the reservation under which a payment has its outcome. `isOwn`: this process
 * has recorded it.
 */
function conclude(
  notifier: Notifier,
  payment: ConcludedPayment,
  { isOwn }: { isOwn: boolean },
): void {
  if (!hasOutcome(payment)) return;
  const { waiters, followed } = notifier;
  const wasFollowed = followed.delete(payment.id);
  if (isOwn || wasFollowed) announceOutcome(notifier, payment);
  for (const waiter of waiters.get(payment.id) ?? []) {
    if (!isFor(waiter, payment)) continue;
    forget(waiters, payment.id, waiter);
    waiter.end(payment);
  }
}
