import { randomUUID } from "node:crypto";
import type { Address, Hex, Network, ReservationRequest } from "@coinslot/protocol";
import {
  createLeases,
  createWriter,
  type Database,
  type Durability,
  isDatabaseError,
  type Lease,
  type Leases,
} from "@coinslot/storage";
import type { Transaction } from "kysely";
import {
  finaliseBlocks,
  findBlocks,
  type KnownBlock,
  type UndonePayment,
  undoBlocks,
} from "./blocks.ts";
import { deliverPayments } from "./deliver-payments.ts";
import { type EnqueueRequest, type EnqueueResult, enqueuePayments } from "./enqueue-payments.ts";
import { closePayments, expirePayments } from "./expire-payments.ts";
import { findOrders, type OrderedPayment } from "./find-orders.ts";
import {
  findHashes,
  findHighestNonce,
  findOpenTransactions,
  type OpenTransaction,
} from "./find-transactions.ts";
import { type ForgetProgress, type ForgetResult, forgetPayments } from "./forget-payments.ts";
import { gather } from "./gather.ts";
import { dropExpiredAnswers } from "./keep-answers.ts";
import type { Inclusion, LedgerPayment } from "./ledger-payment.ts";
import type { LedgerSchema } from "./ledger-schema.ts";
import {
  getPayments,
  listPayments,
  type PaymentFilter,
  type PaymentPage,
} from "./list-payments.ts";
import { lookUpPayments, type PaymentStanding } from "./look-up-payments.ts";
import { type PaymentStats, paymentStats } from "./payment-stats.ts";
import { beatHeart, forgetProcesses, releaseDead } from "./processes.ts";
import { findPromised, type Purse } from "./promises.ts";
import { type PaymentOutcomes, recordOutcomes } from "./record-outcomes.ts";
import { releasePayment } from "./release-payment.ts";
import { type ReserveRequest, type ReserveResult, reservePayments } from "./reserve-payments.ts";
import { loseTransaction, reopenTransaction, settleTransaction } from "./settle-transaction.ts";
import { is } from "./states.ts";
import {
  type NewTransaction,
  type StoreOutcome,
  storeReplacement,
  storeTransaction,
} from "./store-transaction.ts";

export interface LedgerOptions {
  database: Database<LedgerSchema>;
  /** Names this process among those that share the ledger. */
  processId: string;
  /** Unix milliseconds. */
  now: () => number;
  /** How long after its last heartbeat a process counts as alive. */
  heartbeatLeaseMs: number;
  /** How long answers are kept, and keys belong to one payment. */
  keepAnswersMs: number;
  /** How often a payer may let a handler run for nothing. */
  releaseLimit: { count: number; windowMs: number };
}

/** A wish to reserve; the ledger adds its secret and the name of the row. */
export type ReserveWish = Omit<ReserveRequest, "paymentId" | "token">;

/**
 * The payments, their transactions and their answers. Every change of state is one of these
 * functions, and each of them one guarded statement in a database transaction of its own or of a
 * group; README.md beside this file says which states there are, and who may race whom.
 *
 * Every function throws a `DatabaseError` on faults of the database.
 */
export interface Ledger {
  readonly processId: string;
  readonly leases: Leases;
  /** `spent`: open payments of this payer that were executed, or cancelled, before its balance was read. */
  reserve(wish: ReserveWish, spent?: readonly string[]): Promise<ReserveResult>;
  /** Open payments of a payer: what it has promised of an asset. */
  findPromised(which: Purse & { limit: number }): Promise<LedgerPayment[]>;
  lookUp(request: ReservationRequest): Promise<PaymentStanding>;
  enqueue(request: EnqueueRequest): Promise<EnqueueResult>;
  release(options: {
    token: string;
    payer: Address;
    countsAgainstPayer: boolean | "if_failed";
  }): Promise<void>;
  deliver(token: string): Promise<void>;

  /** The oldest queued payments of a network. */
  findQueued(options: { network: Network; limit: number }): Promise<OrderedPayment[]>;
  /** How many payments of a network are queued, counted up to a number. */
  countQueued(options: { network: Network; upTo: number }): Promise<number>;
  storeTransaction(lease: Lease, record: NewTransaction): Promise<StoreOutcome>;
  storeReplacement(
    lease: Lease,
    record: Pick<NewTransaction, "id" | "broadcast">,
  ): Promise<StoreOutcome>;
  findOpenTransactions(relayer: { network: Network; relayer: Address }): Promise<OpenTransaction[]>;
  findHighestNonce(relayer: { network: Network; relayer: Address }): Promise<number | undefined>;
  /** Every hash of a transaction, the newest first. */
  findHashes(transactionId: string): Promise<Hex[]>;

  /** Records outcomes and, with them, what became of their transaction. Returns what changed, as it stands now. */
  recordOutcomes(
    outcomes: readonly PaymentOutcomes[],
    settled?: { id: string; inclusion: Inclusion; gasUsed: bigint } | undefined,
  ): Promise<LedgerPayment[]>;
  loseTransaction(id: string): Promise<void>;
  /** Returns whether it had been given up as lost. */
  reopenTransaction(which: { network: Network; relayer: Address; nonce: number }): Promise<boolean>;
  expire(options: { network: Network; before: bigint }): Promise<LedgerPayment[]>;

  /** Failed payments that somebody may still execute, after `afterId` in the order of their ids. */
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

  beatHeart(): Promise<void>;
  /** Ends what dead processes held. Returns what was queued. */
  releaseDead(): Promise<{ reserved: number; queued: LedgerPayment[] }>;
  /** Says that this process ends, so that nobody waits for its heart to stop. */
  leave(): Promise<void>;
  dropExpiredAnswers(): Promise<void>;
  /** One step of forgetting what ended before a time, in Unix milliseconds. */
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

/** Bounds one statement's parameters, and the time for which it holds its locks. */
const mostAtOnce = 250;
const busyRetries = 4;

/** The ledger over an open database. */
export function createLedger(options: LedgerOptions): Ledger {
  const { database, processId, now, heartbeatLeaseMs, keepAnswersMs, releaseLimit } = options;
  const { dialect, kysely: db } = database;
  const writer = createWriter(database);
  const leases = createLeases({ database });

  /** A deadlock or a failed serialisation wrote nothing: the same again finds its turn. */
  async function write<Result>(
    work: (transaction: Transaction<LedgerSchema>) => Promise<Result>,
    options?: { durability?: Durability | undefined },
  ): Promise<Result> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await writer.write(work, options);
      } catch (error) {
        if (!isDatabaseError(error, "busy") || attempt > busyRetries) throw error;
      }
    }
  }

  /** For what a process says of its own requests: README.md beside this file says why the disk need not have it yet. */
  const writeForProcess: typeof write = (work) => write(work, { durability: "process" });

  const lookUpOne = gather<ReservationRequest, PaymentStanding>(
    (requests) =>
      lookUpPayments({ db, dialect, requests, now: now(), heartbeatLeaseMs, keepAnswersMs }),
    { mostItems: mostAtOnce },
  );
  const reserveAll = (requests: readonly ReserveRequest[], spent: readonly string[] = []) =>
    writeForProcess((transaction) =>
      reservePayments({
        transaction,
        dialect,
        requests,
        spent,
        owner: processId,
        now: now(),
        heartbeatLeaseMs,
        keepAnswersMs,
        releaseLimit,
      }),
    );
  const reserveOne = gather<ReserveRequest, ReserveResult>((requests) => reserveAll(requests), {
    mostItems: mostAtOnce,
  });
  const enqueueOne = gather<EnqueueRequest, EnqueueResult>(
    (requests) =>
      writeForProcess((transaction) =>
        enqueuePayments({ transaction, dialect, requests, now: now(), keepAnswersMs }),
      ),
    { mostItems: mostAtOnce },
  );
  const deliverOne = gather<string, undefined>(
    async (tokens) => {
      await writeForProcess((transaction) =>
        deliverPayments({ transaction, dialect, tokens, now: now() }),
      );
      return tokens.map(() => undefined);
    },
    { mostItems: mostAtOnce },
  );

  return {
    processId,
    leases,
    async reserve(wish, spent = []) {
      const token = createSortableId(now()) + randomUUID();
      const request = { ...wish, paymentId: createSortableId(now()), token };
      if (spent.length === 0) return reserveOne(request);
      // What is spent for one balance may be open for another, so nobody shares this run.
      const [result] = await reserveAll([request], spent);
      if (result === undefined) throw new TypeError("A wish without a result");
      return result;
    },
    findPromised: (which) => findPromised({ db, dialect, ...which }),
    lookUp: lookUpOne,
    enqueue: enqueueOne,
    release: ({ token, payer, countsAgainstPayer }) =>
      writeForProcess((transaction) =>
        releasePayment({
          transaction,
          dialect,
          token,
          payer,
          countsAgainstPayer,
          now: now(),
          releaseWindowMs: releaseLimit.windowMs,
        }),
      ),
    deliver: deliverOne,

    findQueued: ({ network, limit }) =>
      findOrders({
        db,
        dialect,
        where: (query) =>
          query
            .where("payments.network", "=", network)
            .where("payments.state", "=", is("queued"))
            .limit(limit),
      }),
    async countQueued({ network, upTo }) {
      const row = await db
        .selectFrom(
          db
            .selectFrom("payments")
            .select("id")
            .where("network", "=", network)
            .where("state", "=", is("queued"))
            .limit(upTo)
            .as("queued"),
        )
        .select((select) => select.fn.countAll().as("count"))
        .executeTakeFirst();
      return Number(row?.count ?? 0);
    },
    storeTransaction: (lease, record) =>
      storeTransaction({ write, dialect, leases, lease, now: now() }, record),
    storeReplacement: (lease, record) =>
      storeReplacement({ write, dialect, leases, lease, now: now() }, record),
    findOpenTransactions: (relayer) => findOpenTransactions({ db, dialect, ...relayer }),
    findHighestNonce: (relayer) => findHighestNonce({ db, ...relayer }),
    findHashes: (transactionId) => findHashes({ db, transactionId }),

    recordOutcomes: (outcomes, settled) =>
      write(async (transaction) => {
        const changed: LedgerPayment[] = [];
        for (const each of outcomes) {
          changed.push(
            ...(await recordOutcomes({ transaction, dialect, outcomes: each, now: now() })),
          );
        }
        if (settled) await settleTransaction({ transaction, ...settled });
        return changed;
      }),
    loseTransaction: (id) => write((transaction) => loseTransaction({ transaction, id })),
    reopenTransaction: (which) =>
      write((transaction) => reopenTransaction({ transaction, ...which })),
    expire: ({ network, before }) =>
      write((transaction) => expirePayments({ transaction, dialect, network, before })),

    findFailed: ({ network, limit, afterId = "" }) =>
      findOrders({
        db,
        dialect,
        where: (query) =>
          query
            .where("payments.network", "=", network)
            .where("payments.state", "=", is("failed"))
            .where("payments.closed_at", "is", null)
            .where("payments.id", ">", afterId)
            .limit(limit),
      }),
    findOverdue: ({ network, before, limit }) =>
      findOrders({
        db,
        dialect,
        where: (query) =>
          query
            .where("payments.network", "=", network)
            .where("payments.state", "=", is("submitted"))
            .where("payments.valid_before", "<=", dialect.amount.encode(before))
            .limit(limit),
      }),
    closePayments: (ids) => write((transaction) => closePayments({ transaction, ids, now: now() })),
    findBlocks: (which) => findBlocks({ db, ...which }),
    undoBlocks: (which) => write((transaction) => undoBlocks({ transaction, ...which })),
    finaliseBlocks: (which) =>
      write((transaction) => finaliseBlocks({ transaction, now: now(), ...which })),

    beatHeart: () => write((transaction) => beatHeart({ db: transaction, dialect, processId })),
    releaseDead: () =>
      write((transaction) => releaseDead({ transaction, dialect, heartbeatLeaseMs })),
    leave: () => write((transaction) => forgetProcesses({ transaction, which: { id: processId } })),
    dropExpiredAnswers: () =>
      write((transaction) => dropExpiredAnswers({ transaction, now: now() })),
    forgetPayments: (which) =>
      write((transaction) => {
        const nowSeconds = BigInt(Math.floor(now() / 1000));
        return forgetPayments({ transaction, dialect, nowSeconds, ...which });
      }),

    get: (ids) => getPayments({ db, dialect, ids }),
    list: (filter) => listPayments({ db, dialect, filter }),
    stats: (which = {}) => paymentStats({ db, dialect, ...which }),

    notify: database.notify,
    listen: database.listen,
  };
}

/**
 * An id that sorts by its time, so that rows which are made together lie together: 48 bits of
 * milliseconds, then the random ones of a UUID, of which Node makes many at a time.
 */
export function createSortableId(now: number): string {
  return Math.floor(now).toString(16).padStart(12, "0") + randomUUID().replaceAll("-", "");
}
