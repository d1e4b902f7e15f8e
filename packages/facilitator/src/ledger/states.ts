import { type RawBuilder, sql } from "kysely";
import type { PaymentState, TransactionState } from "./ledger-schema.ts";

/**
 * A state written into the statement itself. SQLite uses an index over one state only if the
 * statement shows that it asks for it, and a parameter shows nothing.
 */
export function is<State extends PaymentState | TransactionState>(state: State): RawBuilder<State> {
  return sql.lit(state);
}
