import { randomUUID } from "node:crypto";
import * as z from "zod";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { defineOperation } from "../operators/operation.ts";
import { limitArgument, timeArgument } from "../reads/wire-forms.ts";
import { insertEntry } from "./audit-entry.ts";

const entrySchema = z.object({
  id: z.string(),
  at: z.string(),
  /** `done`, `refused`, `failed`; `begun`: it has written, and its end is not known. */
  outcome: z.string(),
  /** `socket`, `http`, `command` or `process`. */
  via: z.string(),
  /** As the way in has proven it: a key's fingerprint, a user of the system. */
  actor: z.string(),
  /** As the caller says: an account of the console. */
  account: z.string().nullable(),
  /** Written by `audit.record`, in the caller's words. */
  isRecorded: z.boolean(),
  operation: z.string(),
  /** Without secrets. `{ "cut" }` has the begin of a long one. */
  argument: z.unknown(),
  /** Id of the payment or refund. */
  subject: z.string().nullable(),
  idempotencyKey: z.string().nullable(),
  /** Of a refusal. */
  code: z.string().nullable(),
  message: z.string().nullable(),
  result: z.unknown(),
});

/** An entry of the audit log. */
export type AuditEntry = z.infer<typeof entrySchema>;

export const auditListArgument = z.strictObject({
  operation: z.string().max(100).optional(),
  account: z.string().max(500).optional(),
  /** Id of a payment or refund. */
  subject: z.string().max(100).optional(),
  from: timeArgument.optional(),
  to: timeArgument.optional(),
  cursor: z
    .string()
    .regex(/^\d{1,15}$/, "is no cursor of a page")
    .optional(),
  /** Default 50. */
  limit: limitArgument.optional(),
});

export const auditListResult = z.object({
  entries: z.array(entrySchema),
  nextCursor: z.string().nullable(),
});

/** A page of the audit log. */
export type AuditList = z.infer<typeof auditListResult>;

/** Acting commands, the newest first: each by its last entry. */
export const listAuditOperation = defineOperation({
  name: "audit.list",
  access: "read",
  argument: auditListArgument,
  result: auditListResult,
  run: (reads, argument) => listEntries(reads, argument),
});

async function listEntries(
  { db }: LedgerReads,
  { limit = 50, ...filter }: z.output<typeof auditListArgument>,
): Promise<AuditList> {
  const { operation, account, subject, from, to, cursor } = filter;
  let query = db
    .selectFrom("audit_entries")
    .selectAll()
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom("audit_entries as later")
            .select("later.seq")
            .whereRef("later.act", "=", "audit_entries.act")
            .whereRef("later.seq", ">", "audit_entries.seq"),
        ),
      ),
    )
    .orderBy("seq", "desc")
    .limit(limit + 1);
  if (operation !== undefined) query = query.where("operation", "=", operation);
  if (account !== undefined) query = query.where("account", "=", account);
  if (subject !== undefined) query = query.where("subject", "=", subject);
  if (from !== undefined) query = query.where("at", ">=", from);
  if (to !== undefined) query = query.where("at", "<", to);
  if (cursor !== undefined) query = query.where("seq", "<", Number(cursor));
  const rows = await query.execute();
  const page = rows.slice(0, limit);
  const entries = page.map((row) => ({
    id: row.act,
    at: new Date(row.at).toISOString(),
    outcome: row.outcome,
    via: row.via,
    actor: row.actor,
    account: row.account,
    isRecorded: row.is_recorded === 1,
    operation: row.operation,
    argument: parse(row.argument),
    subject: row.subject,
    idempotencyKey: row.idempotency_key,
    code: row.code,
    message: row.message,
    result: row.result === null ? null : parse(row.result),
  }));
  const last = page.at(-1);
  return { entries, nextCursor: rows.length > limit && last ? String(last.seq) : null };
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}

export const auditRecordArgument = z.strictObject({
  /** The caller's own term, such as `session.open`. */
  operation: z.string().min(1).max(100),
  outcome: z.enum(["done", "refused", "failed"]),
  /** Of the caller, if the call names none. */
  account: z.string().max(500).optional(),
  argument: z.record(z.string(), z.unknown()).optional(),
  code: z.string().max(100).optional(),
  message: z.string().max(500).optional(),
  idempotencyKey: z.string().max(200).optional(),
});

/**
 * Writes an act of the caller's own into the audit log: a sign-in, for example. The entry says that
 * it is in the caller's words.
 */
export const recordAuditOperation = defineOperation({
  name: "audit.record",
  access: "write",
  isAudited: false,
  argument: auditRecordArgument,
  result: z.object({ id: z.string() }),
  async run({ ledger, caller }, { operation, argument = {}, account, idempotencyKey, ...end }) {
    const id = randomUUID();
    const { dialect } = ledger;
    const named = {
      ...caller,
      account: caller.account ?? account,
      idempotencyKey: caller.idempotencyKey ?? idempotencyKey,
    };
    const act = { id, caller: named, operation, argument, isRecorded: true };
    await ledger.write((db) => insertEntry({ db, dialect }, act, end));
    return { id };
  },
});

export const auditOperations = [listAuditOperation, recordAuditOperation];
