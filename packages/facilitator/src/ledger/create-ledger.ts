import { randomUUID } from "node:crypto";
import type { ReservationRequest } from "@coinslot/protocol";
import { createLeases, type Database, isDatabaseError } from "@coinslot/storage";
import type { Transaction } from "kysely";
import { gather } from "./gather.ts";
import type { Ledger } from "./ledger.ts";
import { createLedgerWriter } from "./ledger-writer.ts";
import { closePayments, expirePayments } from "./maintenance/expire-payments.ts";
import { forgetPayments } from "./maintenance/forget-payments.ts";
import { forgetProcesses, releaseAbandoned, sendHeartbeat } from "./maintenance/processes.ts";
import {
  type CodePayerLimits,
  defaultCodePayerLimits,
  findRefusal,
} from "./payments/admit-code.ts";
import { type AnswerLimits, createAnswerQuotas } from "./payments/answer-quotas.ts";
import { findPromised } from "./payments/committed-balance.ts";
import { deliverPayments } from "./payments/deliver-payments.ts";
import {
  type EnqueueRequest,
  type EnqueueResult,
  enqueuePayments,
} from "./payments/enqueue-payments.ts";
import type { FreeRunLimit } from "./payments/free-runs.ts";
import { dropExpiredAnswers, measureAnswers } from "./payments/keep-answers.ts";
import type { ConcludedPayment } from "./payments/ledger-payment.ts";
import { recordOutcomes } from "./payments/record-outcomes.ts";
import { releasePayment } from "./payments/release-payment.ts";
import { reservePayments } from "./payments/reserve-payments.ts";
import type { ReserveRequest, ReserveResult } from "./payments/reserve-request.ts";
import { createOwedEnds } from "./payments/retry-queue.ts";
import { areNamesKnown, rememberSoldNames, type SoldNames } from "./payments/sold-names.ts";
import { countQueued, findQueued } from "./queries/find-queued.ts";
import { findFailed, findOverdue } from "./queries/find-watched.ts";
import { getPayments, listPayments } from "./queries/list-payments.ts";
import { lookUpPayments, type PaymentStanding } from "./queries/look-up-payments.ts";
import { paymentStats } from "./queries/payment-stats.ts";
import type { LedgerSchema } from "./schema.ts";
import { createSortableId } from "./sortable-id.ts";
import { finaliseBlocks, findBlocks, undoBlocks } from "./transactions/blocks.ts";
import {
  findHashes,
  findHighestNonce,
  findOpenIds,
  findOpenTransactions,
} from "./transactions/find-transactions.ts";
import {
  loseTransaction,
  reopenTransaction,
  settleTransaction,
} from "./transactions/settle-transaction.ts";
import { storeReplacement, storeTransaction } from "./transactions/store-transaction.ts";

export interface LedgerOptions {
  database: Database<LedgerSchema>;
  /** Name of this process among those that share the ledger. */
  processId: string;
  /** Unix milliseconds. */
  now: () => number;
  /** Time after its last heartbeat for which a process counts as alive. */
  heartbeatLeaseMs: number;
  /** Time for which answers are kept, and keys belong to one payment. */
  keepAnswersMs: number;
  releaseLimit: FreeRunLimit;
  /** Limits of the risk taken on payers with code. */
  codePayers?: CodePayerLimits | undefined;
  /** Default 16 MiB of a payer, 256 MiB of a process, 1 GiB in the table. */
  answerLimits?: Partial<AnswerLimits> | undefined;
}

/** Bounds one statement's parameters, and the time for which it holds its locks. */
const maxAtOnce = 250;

const defaultAnswerLimits: AnswerLimits = {
  bytesPerPayer: 16 * 2 ** 20,
  bytesPerProcess: 256 * 2 ** 20,
  bytesInTable: 2 ** 30,
};
/** Interval between sums over all processes' kept answers: the query reads every one of them. */
const measureEveryMs = 300_000;

/** The ledger over an open database. */
export function createLedger(options: LedgerOptions): Ledger {
  const { database, processId, now, heartbeatLeaseMs, keepAnswersMs, releaseLimit } = options;
  const { codePayers = defaultCodePayerLimits } = options;
  const { dialect, kysely: db } = database;
  const { write } = createLedgerWriter(database);
  const quotas = createAnswerQuotas({ ...defaultAnswerLimits, ...options.answerLimits });
  const leases = createLeases({ database });

  /**
   * For a process's records of its own requests. README.md beside this file gives the reason why
   * the disk need not have them yet.
   */
  const writeForProcess: typeof write = (work) => write(work, { durability: "process" });

  const lookUpOne = gather<ReservationRequest, PaymentStanding>(
    (requests) =>
      lookUpPayments({ db, dialect, requests, now: now(), heartbeatLeaseMs, keepAnswersMs }),
    { maxItems: maxAtOnce },
  );
  const soldNames: SoldNames = new Map();
  async function reserveAll(requests: readonly ReserveRequest[], spent: readonly string[] = []) {
    // Ids are remembered: the row of a new name must outlive a crash of the database.
    const durability = areNamesKnown(requests, soldNames) ? "process" : "disk";
    const reserve = (transaction: Transaction<LedgerSchema>) =>
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
        codePayers,
        soldNames,
      });
    const reserved = await write(reserve, { durability });
    rememberSoldNames(soldNames, reserved.soldNames);
    return reserved.results;
  }
  const reserveOne = gather<ReserveRequest, ReserveResult>((requests) => reserveAll(requests), {
    maxItems: maxAtOnce,
  });
  const enqueueOne = gather<EnqueueRequest, EnqueueResult>(
    (requests) =>
      writeForProcess((transaction) =>
        enqueuePayments({ transaction, dialect, requests, now: now(), keepAnswersMs, quotas }),
      ),
    { maxItems: maxAtOnce },
  );
  const deliverOne = gather<string, undefined>(
    async (tokens) => {
      await writeForProcess((transaction) =>
        deliverPayments({ transaction, dialect, tokens, now: now() }),
      );
      return tokens.map(() => undefined);
    },
    { maxItems: maxAtOnce },
  );

  let measuresAt = 0;
  const ends = createOwedEnds();
  const release: Ledger["release"] = ({ token, payer, countsAgainstPayer, hasRun = false }) =>
    writeForProcess((transaction) =>
      releasePayment({
        transaction,
        dialect,
        token,
        payer,
        countsAgainstPayer,
        hasRun,
        now: now(),
        releaseWindowMs: releaseLimit.windowMs,
      }),
    );

  async function reserve(request: ReserveRequest, spent: readonly string[]) {
    if (spent.length === 0) return reserveOne(request);
    // A payment that is spent for one balance may be open for another, so no other caller shares
    // this run.
    const [result] = await reserveAll([request], spent);
    if (result === undefined) throw new TypeError("A wish without a result");
    return result;
  }

  return {
    processId,
    leases,
    async reserve(wish, spent = []) {
      const token = createSortableId(now()) + randomUUID();
      const { payer } = wish.id;
      try {
        return await reserve({ paymentId: createSortableId(now()), token, ...wish }, spent);
      } catch (error) {
        // The commit may have happened although its confirmation was lost.
        if (isDatabaseError(error, "connection-lost")) {
          ends.owe(token, () => release({ token, payer, countsAgainstPayer: false }));
        }
        throw error;
      }
    },
    findRefusal: (payer) => findRefusal({ db, dialect, payer }),
    findPromised: (which) => findPromised({ db, dialect, ...which }),
    lookUp: lookUpOne,
    enqueue: enqueueOne,
    release: (which) => ends.write(which.token, () => release(which)),
    deliver: (token) => ends.write(token, () => deliverOne(token)),
    retryPending: ends.settle,

    findQueued: (which) => findQueued({ db, dialect, ...which }),
    countQueued: (which) => countQueued({ db, ...which }),
    storeTransaction: (lease, record) =>
      storeTransaction({ write, dialect, leases, lease, now: now() }, record),
    storeReplacement: (lease, record) =>
      storeReplacement({ write, dialect, leases, lease, now: now() }, record),
    findOpenTransactions: (relayer) => findOpenTransactions({ db, dialect, ...relayer }),
    findOpenIds: (relayer) => findOpenIds({ db, ...relayer }),
    findHighestNonce: (relayer) => findHighestNonce({ db, ...relayer }),
    findHashes: (transactionId) => findHashes({ db, transactionId }),

    recordOutcomes: (outcomes, settled) =>
      write(async (transaction) => {
        const changed: ConcludedPayment[] = [];
        for (const each of outcomes) {
          changed.push(
            ...(await recordOutcomes({
              transaction,
              dialect,
              outcomes: each,
              now: now(),
              refusalMs: codePayers.refusalMs,
            })),
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

    findFailed: (which) => findFailed({ db, dialect, ...which }),
    findOverdue: (which) => findOverdue({ db, dialect, ...which }),
    closePayments: (ids) => write((transaction) => closePayments({ transaction, ids, now: now() })),
    findBlocks: (which) => findBlocks({ db, ...which }),
    undoBlocks: (which) => write((transaction) => undoBlocks({ transaction, ...which })),
    finaliseBlocks: (which) =>
      write((transaction) => finaliseBlocks({ transaction, now: now(), ...which })),

    sendHeartbeat: () =>
      write((transaction) => sendHeartbeat({ db: transaction, dialect, processId })),
    releaseAbandoned: () =>
      write((transaction) => releaseAbandoned({ transaction, dialect, heartbeatLeaseMs })),
    leave: () => write((transaction) => forgetProcesses({ transaction, which: { id: processId } })),
    async dropExpiredAnswers() {
      await write((transaction) => dropExpiredAnswers({ transaction, now: now() }));
      quotas.dropExpired(now());
      if (now() < measuresAt) return;
      measuresAt = now() + measureEveryMs;
      quotas.measure(await measureAnswers(db));
    },
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
