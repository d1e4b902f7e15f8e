import type { Generated } from "kysely";

/** Outcome of a command in the audit log. `begun`: it has written, and its outcome comes later. */
export type AuditOutcome = "begun" | "done" | "refused" | "failed";

/** One row for each step of an acting command. Written once: triggers refuse every change. */
export interface AuditEntriesTable {
  /** Order of writing. */
  seq: Generated<number>;
  /** The command: its last row has its outcome. */
  act: string;
  /** On the database's clock. */
  at: number;
  outcome: AuditOutcome;
  /** Way in: `socket`, `http`, `command` or `process`. */
  via: string;
  /** The caller, as its way in has proven it: a key's fingerprint, a user of the system. */
  actor: string;
  /** The account that the caller names: of a console, for example. */
  account: string | null;
  /** 1: written by `audit.record`, in the caller's words. */
  is_recorded: number;
  operation: string;
  /** JSON, without secrets. */
  argument: string;
  /** Id of the payment or refund that it acts on. */
  subject: string | null;
  idempotency_key: string | null;
  /** Of a refusal. */
  code: string | null;
  message: string | null;
  /** JSON, without secrets. */
  result: string | null;
}
