import { sql } from "kysely";
import type { LedgerContext } from "../ledger/ledger-context.ts";

/** The ledger as it is later, by its process's clock and by the database's. */
export function ledgerLater(ledger: LedgerContext, ms: number): LedgerContext {
  const { dialect, now } = ledger;
  const nowMs = () => sql<number>`(${dialect.nowMs()} + ${sql.lit(ms)})`;
  const beginMs = () => sql<number>`(${dialect.beginMs()} + ${sql.lit(ms)})`;
  return { ...ledger, now: () => now() + ms, dialect: { ...dialect, nowMs, beginMs } };
}
