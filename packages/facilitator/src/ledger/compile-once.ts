import type { Compilable, CompiledQuery, Kysely } from "kysely";
import type { LedgerReads } from "./ledger-context.ts";
import type { LedgerSchema } from "./schema.ts";

/**
 * A statement that is compiled once for each engine, and then bound to values: for those of every
 * request. It names its columns, so that a change of the schema gives it no other ones.
 *
 * @param build the statement of one value; its text is the same for all
 * @param bind the parameters of a value, in the order of the text
 */
export function compileOnce<Value, Row>(
  build: (db: Kysely<LedgerSchema>, value: Value) => Compilable<Row>,
  bind: (value: Value) => readonly unknown[],
): (reads: LedgerReads, value: Value) => Promise<Row[]> {
  const compiled = new Map<LedgerReads["dialect"]["engine"], CompiledQuery<Row>>();
  return async ({ db, dialect: { engine } }, value) => {
    const statement = compiled.get(engine) ?? build(db, value).compile();
    compiled.set(engine, statement);
    const { rows } = await db.executeQuery<Row>({ ...statement, parameters: bind(value) });
    return rows;
  };
}
