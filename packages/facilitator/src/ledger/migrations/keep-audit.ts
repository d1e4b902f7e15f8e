import type { Dialect } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";

const refused = "an entry of the audit log never changes";

/**
 * The audit log: acting commands of operators. Append-only, and kept as long as the ledger. The
 * previous release goes on beside this step, and records nothing.
 */
export async function keepAudit<Schema>(
  transaction: Transaction<Schema>,
  { engine, types, autoIncrement }: Dialect,
): Promise<void> {
  const { schema } = transaction;
  await schema
    .createTable("audit_entries")
    .addColumn("seq", types.integer, autoIncrement)
    .addColumn("act", types.text, (column) => column.notNull())
    .addColumn("at", types.timestampMs, (column) => column.notNull())
    .addColumn("outcome", types.text, (column) => column.notNull())
    .addColumn("via", types.text, (column) => column.notNull())
    .addColumn("actor", types.text, (column) => column.notNull())
    .addColumn("account", types.text)
    .addColumn("is_recorded", types.integer, (column) => column.notNull())
    .addColumn("operation", types.text, (column) => column.notNull())
    .addColumn("argument", types.text, (column) => column.notNull())
    .addColumn("subject", types.text)
    .addColumn("idempotency_key", types.text)
    .addColumn("code", types.text)
    .addColumn("message", types.text)
    .addColumn("result", types.text)
    .execute();
  await schema
    .createIndex("audit_entries_act")
    .on("audit_entries")
    .columns(["act", "seq"])
    .execute();
  await schema
    .createIndex("audit_entries_subject")
    .on("audit_entries")
    .columns(["subject", "seq"])
    .execute();
  for (const statement of engine === "sqlite" ? sqliteTriggers : postgresTriggers) {
    await sql.raw(statement).execute(transaction);
  }
}

const sqliteTriggers = ["update", "delete"].map(
  (event) =>
    `create trigger audit_entries_${event} before ${event} on audit_entries begin select raise(abort, '${refused}'); end`,
);

const postgresTriggers = [
  `create function coinslot_audit_kept() returns trigger language plpgsql as $body$ begin raise exception '${refused}'; end $body$`,
  "create trigger audit_entries_kept before update or delete on audit_entries for each row execute function coinslot_audit_kept()",
  "create trigger audit_entries_whole before truncate on audit_entries for each statement execute function coinslot_audit_kept()",
];
