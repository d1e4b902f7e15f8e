import { createLeases, type Database } from "@coinslot/storage";
import type { LedgerContext } from "./ledger-context.ts";
import {
  type CodePayerLimits,
  defaultCodePayerLimits,
  type FreeRunLimit,
} from "./ledger-limits.ts";
import { createLedgerWriter } from "./ledger-writer.ts";
import { type ProcessRelayer, writeProcessRelayers } from "./maintenance/process-relayers.ts";
import { type AnswerLimits, createAnswerQuotas } from "./payments/answer-quotas.ts";
import { createRetryQueue } from "./payments/retry-queue.ts";
import type { LedgerSchema } from "./schema.ts";

export interface LedgerOptions {
  database: Database<LedgerSchema>;
  /** Name of this process among those that share the ledger. */
  processId: string;
  /** The relayers whose keys this process has. Default: none. */
  relayers?: readonly ProcessRelayer[] | undefined;
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

const defaultAnswerLimits: AnswerLimits = {
  bytesPerPayer: 16 * 2 ** 20,
  bytesPerProcess: 256 * 2 ** 20,
  bytesInTable: 2 ** 30,
};

/** The ledger of one process over an open database. */
export function createLedger(options: LedgerOptions): LedgerContext {
  const { database, processId, now, heartbeatLeaseMs, keepAnswersMs, releaseLimit } = options;
  return {
    processId,
    relayers: writeProcessRelayers(options.relayers ?? []),
    db: database.kysely,
    dialect: database.dialect,
    write: createLedgerWriter(database).write,
    leases: createLeases({ database }),
    notify: database.notify,
    listen: database.listen,
    now,
    heartbeatLeaseMs,
    heartbeat: {
      sentAt: Number.NEGATIVE_INFINITY,
      lapsedAt: Number.NEGATIVE_INFINITY,
      living: [processId],
      writtenAt: undefined,
      unsureSince: Number.NEGATIVE_INFINITY,
      isMissing: false,
    },
    keepAnswersMs,
    releaseLimit,
    codePayers: options.codePayers ?? defaultCodePayerLimits,
    quotas: createAnswerQuotas({ ...defaultAnswerLimits, ...options.answerLimits }),
    soldNames: new Map(),
    pendingEnds: createRetryQueue(),
  };
}
