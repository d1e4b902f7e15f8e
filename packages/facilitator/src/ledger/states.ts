import { type ExpressionBuilder, type RawBuilder, sql } from "kysely";
import type { LedgerSchema, PaymentState } from "./schema.ts";
import type { TransactionState } from "./transactions-schema.ts";

/** Failure reason of a payment that could not be executed before its `validBefore`. */
export const timeIsOver = "invalid_exact_evm_payload_authorization_valid_before";

/**
 * A state written into the statement itself. SQLite uses an index over one state only if the
 * statement shows that state. A parameter hides it.
 */
export function is<State extends PaymentState | TransactionState>(state: State): RawBuilder<State> {
  return sql.lit(state);
}

/**
 * State of a payment that is given up before a transaction carries it: `released`. If it had failed
 * before and any sender may still execute its authorization: `failed` and watched again.
 */
export function givenUp(set: ExpressionBuilder<LedgerSchema, "payments">) {
  return set
    .case()
    .when("reason", "is", null)
    .then("released" as const)
    .else("failed" as const)
    .end();
}
