import type { SingleFlight } from "@coinslot/concurrency";
import type { Address, Network } from "@coinslot/protocol";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import type { ReceiptPollInterval } from "./receipt-poll-interval.ts";
import type { RelayerSigner } from "./relayer-signer.ts";
import { countInFlight, type RelayerState } from "./relayer-state.ts";

export interface RelayerOptions {
  context: SettlementContext;
  network: SettlementNetwork;
  address: Address;
  /** `undefined`: keyless. It signs nothing, and sends again what was signed. */
  signer: RelayerSigner | undefined;
  /** Called when payments of the relayer's transactions are queued again. */
  onRequeued: (paymentIds: readonly string[]) => void;
  /** Called when the relayer can plan, after its lease was taken or a block has left the chain. */
  onReconciled: () => void;
  /** Called whenever there may be room for another transaction. */
  onCapacity: () => void;
  /** Called when this process may not plan for the relayer any more. */
  onReleased: () => void;
  /** Called when the lease has been given back: another process may take it. */
  onGivenBack: () => void;
  /** Called when a node returns that the relayer cannot pay. */
  onInsufficientFunds: () => void;
}

/** One address that sends transactions in this process while it holds the lease. */
export interface Relayer extends RelayerOptions {
  state: RelayerState;
  pace: ReceiptPollInterval;
  /** Its name in logs and metrics. */
  labels: { network: Network; relayer: Address };
  /** Its name in the ledger. */
  identity: { network: Network; relayer: Address };
  keeper: LeaseKeeper;
  /** Reads the open transactions from the ledger again, and compares them with the chain. */
  reconciling: SingleFlight;
  /**
   * Reconciles if the ledger has transactions that are not followed. Their process may have died.
   */
  sweeping: SingleFlight;
  /** Polls for receipts. */
  polling: SingleFlight;
  /** True while a transaction is signed and stored, which is in flight after that. */
  isStoring: boolean;
  /** Transactions on their way to a node. */
  sending: Set<Promise<void>>;
  /** Usual time from the beginning of a plan to a node's answer to its transaction. */
  dispatchMs: number;
  /** The next scheduled poll. */
  nextPoll: { at: number; cancel: (() => void) | undefined };
  /** Ends the reads of announced blocks. */
  unfollow: (() => void) | undefined;
  isStopped: boolean;
  /**
   * Set while the lease is about to be given back. Nothing new is planned, and the transactions in
   * flight are followed into their blocks, for a time. Cancels the end of that time.
   */
  leaving: (() => void) | undefined;
  /**
   * The ledger may hold more open transactions than are followed here: a reconciliation is pending.
   */
  isStale: boolean;
  /**
   * Resolves when this process can plan, or another one holds the lease. Rejects if it ends before.
   */
  settled: Promise<void>;
  resolveSettled: () => void;
  rejectSettled: (error: Error) => void;
}

/**
 * True if the relayer may plan: it holds the lease, is to keep it, and its signer does not rest. It
 * knows its earlier open transactions, and the chain can come to their nonces. Retired relayers are
 * never asked.
 */
export function isReady({
  state,
  leaving,
  signer,
}: Pick<Relayer, "state" | "leaving" | "signer">): boolean {
  return (
    state.lease !== undefined &&
    state.nextNonce !== undefined &&
    state.farSince === undefined &&
    leaving === undefined &&
    signer !== undefined &&
    signer.fault?.() === undefined
  );
}

/** True if a transaction of the relayer is in flight, or about to be. */
export function isBusy({ state, isStoring }: Pick<Relayer, "state" | "isStoring">): boolean {
  return isStoring || countInFlight(state) > 0;
}

/**
 * Reads each announced block while one is awaited, so that receipts are polled at once. A chain
 * whose nodes announce nothing is polled for receipts alone.
 */
export function followHeads(relayer: Relayer): void {
  const { network, state } = relayer;
  if (network.rpc.announcesHeads && !relayer.isStopped && countInFlight(state) > 0) {
    const pollIntervalMs = Math.max(network.blocks.blockTimeMs(), network.pollMs);
    relayer.unfollow ??= network.watcher.subscribe(() => undefined, { pollIntervalMs });
    return;
  }
  relayer.unfollow?.();
  relayer.unfollow = undefined;
}

/** Polls after a delay, unless a poll is due before that. A later request postpones nothing. */
export function schedulePoll(relayer: Relayer, delayMs: number): void {
  const { nextPoll } = relayer;
  const { clock } = relayer.context;
  const wished = clock.now() + delayMs;
  if (relayer.isStopped || nextPoll.at <= wished) return;
  nextPoll.cancel?.();
  nextPoll.at = wished;
  nextPoll.cancel = clock.setTimer(() => {
    nextPoll.at = Number.POSITIVE_INFINITY;
    if (relayer.isStale) relayer.reconciling.trigger();
    else relayer.polling.trigger();
  }, delayMs);
}
