import type { Dialect } from "@coinslot/storage";
import type { Kysely } from "kysely";
import type { AuditOutcome } from "../ledger/audit-schema.ts";
import type { LedgerSchema } from "../ledger/schema.ts";
import { redact } from "./redact.ts";

/** The caller of a command. */
export interface OperatorCaller {
  /** Way in. */
  via: "socket" | "http" | "command" | "process";
  /** As the way in has proven it: fingerprint of a key, user of the system. */
  actor: string;
  /** As the caller says: an account of a console, for example. */
  account?: string | undefined;
  idempotencyKey?: string | undefined;
}

/** An acting command, for its rows. */
export interface Act {
  /** Its name in the log. */
  id: string;
  caller: OperatorCaller;
  operation: string;
  argument: unknown;
  isRecorded?: boolean | undefined;
}

/** End of a command. */
export interface ActEnd {
  outcome: AuditOutcome;
  code?: string | undefined;
  message?: string | undefined;
  result?: unknown;
}

const maxArgument = 4_000;
const maxResult = 2_000;
const maxText = 500;

/** Adds a row to the log. */
export async function insertEntry(
  { db, dialect }: { db: Kysely<LedgerSchema>; dialect: Dialect },
  { id, caller, operation, argument, isRecorded = false }: Act,
  { outcome, code, message, result }: ActEnd,
): Promise<void> {
  await db
    .insertInto("audit_entries")
    .values({
      act: id,
      at: dialect.nowMs(),
      outcome,
      via: caller.via,
      actor: textOf(caller.actor) ?? "",
      account: textOf(caller.account),
      is_recorded: isRecorded ? 1 : 0,
      operation,
      argument: redact(argument, maxArgument),
      subject: subjectOf(argument, result),
      idempotency_key: textOf(caller.idempotencyKey ?? memberOf(argument, "idempotencyKey")),
      code: textOf(code),
      message: textOf(message),
      result: result === undefined ? null : redact(result, maxResult),
    })
    .execute();
}

/** A text as a database takes it. */
function textOf(text: string | undefined): string | null {
  if (text === undefined) return null;
  return Buffer.from(text.slice(0, maxText).replaceAll("\0", "")).toString();
}

/** The payment, where there is one: a refund tells it in its result. */
function subjectOf(argument: unknown, result: unknown): string | null {
  const subject =
    memberOf(argument, "payment") ?? memberOf(result, "payment") ?? memberOf(argument, "id");
  return textOf(subject);
}

function memberOf(value: unknown, name: string): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const member = new Map<string, unknown>(Object.entries(value)).get(name);
  return typeof member === "string" ? member : undefined;
}
