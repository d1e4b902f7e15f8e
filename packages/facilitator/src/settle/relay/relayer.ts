import { RpcClosedError } from "@coinslot/chain";
import { toLowerHex } from "@coinslot/protocol";
import { createSingleFlight } from "../single-flight.ts";
import { closedTooSoon } from "../unavailable-errors.ts";
import { dispatchTransaction } from "./dispatch-transaction.ts";
import { followTransactions } from "./follow-transactions.ts";
import { keepLease } from "./lease-keeper.ts";
import { createLookPace } from "./receipt-poll-interval.ts";
import type { RelayerContext, RelayerOptions } from "./relayer-context.ts";
import type { RelayerSigner } from "./relayer-signer.ts";
import {
  countInFlight,
  learnFromLedger,
  type RelayerState,
  type TrackedTransaction,
  trackedFrom,
} from "./relayer-state.ts";
import { countUsedNonces } from "./used-nonces.ts";

/** One address that sends transactions, in this process as long as that holds its lease. */
export interface Relayer {
  readonly signer: RelayerSigner;
  readonly state: RelayerState;
  /** Whether transactions may be planned: the lease is held, and what was open before is known. */
  isReady(): boolean;
  /** Resolves when this process is ready to plan, or another one holds the lease; rejects if it ends before. */
  settled(): Promise<void>;
  /** Sends a transaction that has been stored, and follows it to its end. */
  launch(transaction: TrackedTransaction): void;
  /** To be called when the ledger refused to write under the lease. */
  leaseLost(): void;
  /** Reads the open transactions from the ledger again. */
  reload(): void;
  /** Reads them again if there are any that it does not follow: whoever opened them may have died before it told. */
  sweep(): void;
  /** Looks for receipts. */
  look(): void;
  stop(): Promise<void>;
}

/** Starts to hold a relayer's lease, and to follow its open transactions. */
export function startRelayer(options: RelayerOptions): Relayer {
  const { context, network, signer, onQueueChanged, onCapacity, onInsufficientFunds } = options;
  const { ledger, clock, times, logger, metrics } = context;
  const labels = { network: network.network, relayer: signer.address };
  const state: RelayerState = { lease: undefined, nextNonce: undefined, open: new Map() };
  const identity = { network: network.network, relayer: toLowerHex(signer.address) };
  const sending = new Set<Promise<void>>();
  const pace = createLookPace({ maxMs: network.pollMs });
  let cancelLook: (() => void) | undefined;
  let lookAt = Number.POSITIVE_INFINITY;
  let isStopped = false;
  /** What the ledger holds open may be more than what is followed here: reconciling is yet to be done. */
  let isStale = true;
  let tellSettled: () => void = () => undefined;
  let tellClosed: (error: Error) => void = () => undefined;
  const isSettled = new Promise<void>((resolve, reject) => {
    tellSettled = resolve;
    tellClosed = reject;
  });
  // Nobody may ever ask.
  isSettled.catch(() => undefined);

  const reloading = createSingleFlight(() => guarded("reconcile", reconcile));
  const sweeping = createSingleFlight(() =>
    guarded("compare itself with the ledger", compareLedger),
  );
  const looking = createSingleFlight(() => guarded("follow its transactions", follow));
  const keeper = keepLease({
    leases: ledger.leases,
    name: `relayer:${network.network}:${identity.relayer}`,
    owner: ledger.processId,
    ttlMs: times.leaseMs,
    clock,
    logger,
    onChange(lease) {
      state.lease = lease;
      state.nextNonce = undefined;
      state.open.clear();
      logger.info({ ...labels, epoch: lease?.epoch }, lease ? "relayer taken" : "relayer given up");
      if (lease) reloading.trigger();
    },
    onAnswer: () => state.lease === undefined && tellSettled(),
  });

  const shared: RelayerContext = {
    context,
    network,
    signer,
    onQueueChanged,
    onCapacity,
    onInsufficientFunds,
    state,
    pace,
    labels,
    leaseLost: keeper.lost,
    reload: reloading.trigger,
    look: looking.trigger,
  };

  async function guarded(purpose: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (isStopped || error instanceof RpcClosedError) return;
      logger.warn({ err: error, ...labels }, `the relayer could not ${purpose}; it tries again`);
      scheduleLook(network.pollMs);
    }
  }

  /** Compares ledger and chain under a lease that is new, or after something left the chain. */
  async function reconcile(): Promise<void> {
    isStale = true;
    const { lease } = state;
    if (lease === undefined) return;
    const [open, highest = -1] = await Promise.all([
      ledger.findOpenTransactions(identity),
      ledger.findHighestNonce(identity),
    ]);
    const next = Math.max(state.nextNonce ?? 0, highest + 1);
    const used = await countUsedNonces(shared, next);
    if (state.lease?.epoch !== lease.epoch) return;
    for (const transaction of open) {
      const tracked = state.open.get(transaction.id);
      if (tracked) learnFromLedger(tracked, transaction);
      else state.open.set(transaction.id, trackedFrom(transaction, clock.now()));
    }
    await follow();
    for (const transaction of state.open.values()) {
      if (transaction.sentAt !== undefined || transaction.isIncluded) continue;
      await dispatchTransaction(shared, transaction);
    }
    if (state.lease?.epoch !== lease.epoch) return;
    // Only now: what breaks off before this is done again from its beginning.
    isStale = false;
    state.nextNonce = Math.max(state.nextNonce ?? 0, next, used);
    tellSettled();
    // Under a lease that is new, another process may have planned from this queue until now.
    onQueueChanged();
    onCapacity();
  }

  async function compareLedger(): Promise<void> {
    if (state.lease === undefined) return;
    const ids = await ledger.findOpenIds(identity);
    if (ids.some((id) => !state.open.has(id))) reloading.trigger();
  }

  /** Looks what became of the open transactions, and when to look again. */
  async function follow(): Promise<void> {
    if (state.lease === undefined || state.open.size === 0) return;
    await followTransactions(shared);
    metrics.inFlight.set(labels, countInFlight(state));
    if (state.open.size === 0) return;
    scheduleLook(pace.next());
  }

  /** Unless a look is due before that: who comes later puts nothing off. */
  function scheduleLook(delayMs: number): void {
    const wished = clock.now() + delayMs;
    if (isStopped || lookAt <= wished) return;
    cancelLook?.();
    lookAt = wished;
    cancelLook = clock.setTimer(() => {
      lookAt = Number.POSITIVE_INFINITY;
      if (isStale) reloading.trigger();
      else looking.trigger();
    }, delayMs);
  }

  return {
    signer,
    state,
    isReady: () => state.lease !== undefined && state.nextNonce !== undefined,
    settled: () => isSettled,
    launch(transaction) {
      state.open.set(transaction.id, transaction);
      metrics.inFlight.set(labels, countInFlight(state));
      const sent = guarded("send a transaction", () =>
        dispatchTransaction(shared, transaction),
      ).finally(() => {
        sending.delete(sent);
        const sinceMs = clock.now() - (transaction.sentAt ?? clock.now());
        scheduleLook(Math.max(0, pace.first() - sinceMs));
      });
      sending.add(sent);
    },
    leaseLost() {
      if (state.lease) keeper.lost(state.lease);
    },
    reload: reloading.trigger,
    sweep: sweeping.trigger,
    look: looking.trigger,
    async stop() {
      isStopped = true;
      cancelLook?.();
      await Promise.all([sweeping.stop(), reloading.stop(), looking.stop(), ...sending]);
      tellClosed(closedTooSoon());
      await keeper.stop();
    },
  };
}
