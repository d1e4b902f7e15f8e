import type { BlockWatcher, Clock, RpcPool } from "@coinslot/chain";
import type { Address, Network } from "@coinslot/protocol";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import type { LedgerPayment } from "../ledger/payments/ledger-payment.ts";
import type { Logger } from "../logger.ts";
import type { SimulationCache } from "../simulation/simulation-cache.ts";
import type { Simulator } from "../simulation/simulator.ts";
import type { BlockClock } from "./block-clock.ts";
import type { DebitedPayments } from "./evidence/debited-payments.ts";
import type { LateLogs } from "./evidence/late-logs.ts";
import type { SettlementMetrics } from "./metrics.ts";
import type { OutcomeNotifier } from "./outcome-notifier.ts";
import type { BlockPace } from "./pace/block-pace.ts";
import type { PacedTimes } from "./pace/paced-times.ts";
import type { BatchLimits } from "./plan/choose-batch.ts";
import type { SpoiltBatches } from "./plan/spoilt-batches.ts";
import type { FeeQuoter } from "./relay/fee-quote.ts";
import type { SettlementEvent } from "./settlement-event.ts";
import type { TrialFloor } from "./trial-floor.ts";

/**
 * Times of the settlement engine, in milliseconds. The defaults suit payments with a waiting
 * caller. `resendMs`, `replaceMs` and `loseMs` follow the pace of a chain's blocks, unless set.
 */
export interface SettlementTimes {
  /** Duration of a lease whose owner is silent. */
  leaseMs: number;
  /**
   * Interval between reads of the queue, the open transactions and the failed payments without a
   * notification.
   */
  sweepMs: number;
  /** A transaction that no block holds after this is sent again. */
  resendMs: number;
  /** A transaction that no block holds after this is replaced by one that pays more. */
  replaceMs: number;
  /** A nonce that a foreign transaction has used for this long makes ours lost. */
  loseMs: number;
  /** A queued payment must be valid for this much longer, or it expires. */
  leadMs: number;
  /**
   * Interval between reads of the head while one payment is not final, or a failed one may still be
   * executed. More payments make it shorter, a deep chain longer.
   */
  settlingMs: number;
  /**
   * Time for which the chain must have other blocks in the place of final ones. Then their payments
   * are taken back.
   */
  disputeMs: number;
  /**
   * Interval between reads of the head, the tip and the relayers' balances while nothing is open.
   */
  idleMs: number;
  /**
   * Pause between two looks at a refund that the engine works on. The longer pauses of refunds are
   * multiples of it.
   */
  refundMs: number;
}

/** The times that are the same on all chains. */
export type FixedTimes = Omit<SettlementTimes, "resendMs" | "replaceMs" | "loseMs">;

/** One network as the settlement engine uses it. */
export interface SettlementNetwork {
  network: Network;
  chainId: number;
  rpc: RpcPool;
  watcher: BlockWatcher;
  pace: BlockPace;
  times: PacedTimes;
  blocks: BlockClock;
  simulator: Simulator;
  trialFloor: TrialFloor;
  fees: FeeQuoter;
  /** Contract through which several payments share a transaction. Without it, each has its own. */
  multicall3: Address | undefined;
  limits: BatchLimits;
  spoilt: SpoiltBatches;
  debited: DebitedPayments;
  lateLogs: LateLogs;
  /** Transactions of one relayer that no block holds yet, at most. */
  maxInFlight: number;
  /** Gas of a token call whose payer has code. */
  callGasCap: bigint;
  /** Longest interval between receipt polls on a fast chain, after the first quick ones. */
  pollMs: number;
  /** Blocks that must stand on top of a payment's own before it counts. */
  serveAfter: (payment: Pick<LedgerPayment, "value">) => number;
  /** Blocks on top after which nothing is taken back. */
  finalAfter: number;
}

/** A place where a fault test may stop the process. */
export type FaultPointName =
  | "reserved"
  | "queued"
  | "signed"
  | "stored"
  | "broadcast"
  | "included"
  | "recorded"
  | "refund_signed"
  | "refund_queued"
  | "deposit_queued"
  | "deposit_recorded"
  | "channel_admitted"
  | "channel_charged"
  | "channel_lowered"
  | "channel_refund_locked"
  | "channel_refund_signed"
  | "channel_refund_noted"
  | "channel_refund_ended";

/** Shared by the parts of the settlement engine. */
export interface SettlementContext {
  ledger: LedgerContext;
  notifier: OutcomeNotifier;
  simulationCache: SimulationCache;
  metrics: SettlementMetrics;
  times: FixedTimes;
  clock: Clock;
  /** Unix milliseconds. */
  now: () => number;
  logger: Logger;
  emit: (event: SettlementEvent) => void;
  /** Does nothing, except in fault tests. */
  faultPoint: (name: FaultPointName) => void | Promise<void>;
}
