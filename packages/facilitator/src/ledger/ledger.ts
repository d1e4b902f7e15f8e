import type { Address, Hex, Network, ReservationRequest } from "@coinslot/protocol";
import type { Database, Lease, Leases } from "@coinslot/storage";
import type { ForgetProgress, ForgetResult } from "./maintenance/forget-payments.ts";
import type { BalanceKey } from "./payments/committed-balance.ts";
import type { EnqueueRequest, EnqueueResult } from "./payments/enqueue-payments.ts";
import type { ConcludedPayment, Inclusion, LedgerPayment } from "./payments/ledger-payment.ts";
import type { PaymentOutcomes } from "./payments/record-outcomes.ts";
import type { ReserveRequest, ReserveResult } from "./payments/reserve-request.ts";
import type { OrderedPayment } from "./queries/find-orders.ts";
import type { Lane } from "./queries/find-queued.ts";
import type { PaymentFilter, PaymentPage } from "./queries/list-payments.ts";
import type { PaymentStanding } from "./queries/look-up-payments.ts";
import type { PaymentStats } from "./queries/payment-stats.ts";
import type { LedgerSchema } from "./schema.ts";
import type { KnownBlock, UndonePayment } from "./transactions/blocks.ts";
import type { OpenTransaction } from "./transactions/find-transactions.ts";
import type { NewTransaction, StoreOutcome } from "./transactions/store-transaction.ts";

/** A request to reserve. The ledger adds its secret and the name of the row. */
export type ReserveWish = Omit<ReserveRequest, "paymentId" | "token">;

/**
 * The payments, their transactions and their answers. Every change of state is one of these
 * functions. Each is one guarded statement in a database transaction of its own or of a group.
 * README.md beside this file lists the states, and the possible races.
 *
 * Every function throws a `DatabaseError` on faults of the database.
 */
export interface Ledger {
  readonly processId: string;
  readonly leases: Leases;
  /**
   * `spent`: open payments of this payer that were executed, or cancelled, before its balance was
   * read.
   */
  reserve(wish: ReserveWish, spent?: readonly string[]): Promise<ReserveResult>;
  /**
   * The milliseconds for which a payer that has burnt gas is still refused. `undefined` where it is
   * not.
   */
  findRefusal(payer: Address): Promise<number | undefined>;
  /** Open payments of a payer: its promises of an asset. */
  findPromised(which: BalanceKey & { limit: number }): Promise<LedgerPayment[]>;
  lookUp(request: ReservationRequest): Promise<PaymentStanding>;
  enqueue(request: EnqueueRequest): Promise<EnqueueResult>;
  release(options: {
    token: string;
    payer: Address;
    countsAgainstPayer: boolean | "if_failed";
    /** Whether the handler has run under this reservation. Default false. */
    hasRun?: boolean;
  }): Promise<void>;
  deliver(token: string): Promise<void>;
  /** Retries the `release` and `deliver` writes that the database refused when they came. */
  retryPending(): Promise<void>;

  /** The oldest queued payments of one lane of a network. */
  findQueued(options: { network: Network; lane: Lane; limit: number }): Promise<OrderedPayment[]>;
  /** Number of queued payments of a network, or of one lane of it, counted up to a bound. */
  countQueued(options: {
    network: Network;
    lane?: Lane | undefined;
    upTo: number;
  }): Promise<number>;
  storeTransaction(lease: Lease, record: NewTransaction): Promise<StoreOutcome>;
  storeReplacement(
    lease: Lease,
    record: Pick<NewTransaction, "id" | "broadcast">,
  ): Promise<StoreOutcome>;
  findOpenTransactions(relayer: { network: Network; relayer: Address }): Promise<OpenTransaction[]>;
  findOpenIds(relayer: { network: Network; relayer: Address }): Promise<string[]>;
  findHighestNonce(relayer: { network: Network; relayer: Address }): Promise<number | undefined>;
  /** Every hash of a transaction, the newest first. */
  findHashes(transactionId: string): Promise<Hex[]>;

  /**
   * Records outcomes and, with them, the state of their transaction. Returns the changed payments
   * in their current state.
   */
  recordOutcomes(
    outcomes: readonly PaymentOutcomes[],
    settled?: { id: string; inclusion: Inclusion; gasUsed: bigint } | undefined,
  ): Promise<ConcludedPayment[]>;
  loseTransaction(id: string): Promise<void>;
  /** Returns whether it had been given up as lost. */
  reopenTransaction(which: { network: Network; relayer: Address; nonce: number }): Promise<boolean>;
  expire(options: { network: Network; before: bigint }): Promise<LedgerPayment[]>;

  /**
   * Failed payments that any sender may still execute, after `afterId` in the order of their
   * creation. None if that row is gone.
   */
  findFailed(options: {
    network: Network;
    limit: number;
    afterId?: string | undefined;
  }): Promise<OrderedPayment[]>;
  /** Submitted payments that are valid only before a time, in Unix seconds, or less. */
  findOverdue(options: {
    network: Network;
    before: bigint;
    limit: number;
  }): Promise<OrderedPayment[]>;
  closePayments(ids: readonly string[]): Promise<void>;
  findBlocks(options: { network: Network }): Promise<KnownBlock[]>;
  undoBlocks(options: { network: Network; blockHashes: readonly Hex[] }): Promise<UndonePayment[]>;
  finaliseBlocks(options: { network: Network; blockHashes: readonly Hex[] }): Promise<string[]>;

  sendHeartbeat(): Promise<void>;
  /**
   * Ends the reservations and queued payments of dead processes. Returns those that were queued.
   */
  releaseAbandoned(): Promise<{ reserved: number; queued: LedgerPayment[] }>;
  /** Records that this process ends, so that no other waits for its heartbeat to time out. */
  leave(): Promise<void>;
  dropExpiredAnswers(): Promise<void>;
  /** One step of forgetting payments that ended before a time, in Unix milliseconds. */
  forgetPayments(options: {
    progress: ForgetProgress;
    before: number;
    limit: number;
  }): Promise<ForgetResult>;

  get(ids: readonly string[]): Promise<LedgerPayment[]>;
  list(filter: PaymentFilter): Promise<PaymentPage>;
  stats(options?: { createdFrom?: number | undefined }): Promise<PaymentStats[]>;

  notify: Database<LedgerSchema>["notify"];
  listen: Database<LedgerSchema>["listen"];
}
