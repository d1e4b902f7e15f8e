import type { Database, Dialect, Leases, Writer } from "@coinslot/storage";
import type { Kysely } from "kysely";
import type { CodePayerLimits, FreeRunLimit } from "./ledger-limits.ts";
import type { AnswerQuotas } from "./payments/answer-quotas.ts";
import type { RetryQueue } from "./payments/retry-queue.ts";
import type { SoldNames } from "./payments/sold-names.ts";
import type { ReadPace } from "./read-pace.ts";
import type { LedgerSchema } from "./schema.ts";

/** The part of a ledger that reads use. Inside a transaction, `db` is that transaction. */
export interface LedgerReads {
  readonly db: Kysely<LedgerSchema>;
  readonly dialect: Dialect;
  /** Pace of the parts of a long read, each outside a transaction. Absent where none waits. */
  readonly pace?: ReadPace;
}

/**
 * The ledger of one process: the payments, their transactions and their answers. Its operations
 * are the functions of `payments/`, `transactions/`, `queries/` and `maintenance/`, which take it
 * as their first argument. Each is one guarded statement in a database transaction of its own or
 * of a group. README.md beside this file lists the states, and the possible races.
 *
 * Every operation throws a `DatabaseError` on faults of the database.
 */
export interface LedgerContext extends LedgerReads {
  /** Name of this process among those that share the ledger. */
  readonly processId: string;
  /** The relayers whose keys this process has, as its row names them. */
  readonly relayers: string;
  readonly leases: Leases;
  readonly write: Writer<LedgerSchema>["write"];
  readonly notify: Database<LedgerSchema>["notify"];
  readonly listen: Database<LedgerSchema>["listen"];
  /** Unix milliseconds. */
  readonly now: () => number;
  /** Time after its last heartbeat for which a process counts as alive. */
  readonly heartbeatLeaseMs: number;
  /** The heartbeats that were written, on the clock of `now`. */
  readonly heartbeat: {
    /** Begin of the last one. */
    sentAt: number;
    /** When one followed so late that other processes may have counted this one as dead. */
    lapsedAt: number;
    /** The processes of the ledger that live, this one among them, as of the last one. */
    living: readonly string[];
    /** The last one in its row, on the database's clock. The row never has an older one again. */
    writtenAt: number | undefined;
    /** When the database's clock was found put forward, on the clock of `now`. */
    unsureSince: number;
    /**
     * The row had an older one, or was not there: the ledger is not the one that was written to.
     */
    isMissing: boolean;
  };
  /** Time for which answers are kept, and keys belong to one payment. */
  readonly keepAnswersMs: number;
  readonly releaseLimit: FreeRunLimit;
  readonly codePayers: CodePayerLimits;
  readonly quotas: AnswerQuotas;
  readonly soldNames: SoldNames;
  /** `release` and `deliver` writes that failed. */
  readonly pendingEnds: RetryQueue;
}

/**
 * Durability of a process's records of its own requests. README.md beside this file gives the
 * reason why the disk need not have them yet.
 */
export const forProcess = { durability: "process" } as const;
