import type { Dialect } from "@coinslot/storage";
import type { Kysely, Transaction } from "kysely";
import { forProcess, type LedgerContext } from "../ledger-context.ts";
import type { LedgerSchema } from "../schema.ts";
import { is } from "../states.ts";
import { findHighestNonce } from "../transactions/find-transactions.ts";
import type { TransactionsTable } from "../transactions-schema.ts";
import { nextAfter, oldAmong, type WalkOptions, type WalkStep } from "./walk.ts";

/**
 * Deletes final transactions with their signed forms. One step of a walk in the order of their
 * creation. A nonce must not be used again, so a relayer's highest one stays. The next is counted
 * from it, and the chain has used those below.
 *
 * A final row stays final, and a highest nonce only rises, so no guard is needed against other
 * processes.
 */
export function pruneTransactions(
  { write, dialect }: LedgerContext,
  options: WalkOptions,
): Promise<WalkStep> {
  return write(async (transaction) => {
    const next = await transaction
      .selectFrom("transactions")
      .select(["id", "state", "network", "relayer", "nonce"])
      .where("id", ">", options.after)
      .orderBy("id")
      .limit(options.limit)
      .execute();
    const oldest = oldAmong(next, options);
    const final = oldest.filter(({ state }) => state === "final");
    const ids = (rows: readonly { id: string }[]) => rows.map(({ id }) => id);
    await forgetForms({ transaction, dialect, ids: ids(final) });
    const used = await withoutHighest({ transaction, dialect, final });
    if (used.length > 0) {
      await transaction
        .deleteFrom("transactions")
        .where("id", "in", dialect.among(ids(used)))
        .where("state", "=", is("final"))
        .execute();
    }
    return { ended: used.length, after: nextAfter(oldest, options), keptNames: [] };
  }, forProcess);
}

interface Step {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
}

/** Deletes the signed forms. Each transaction is looked up by itself: statistics may be missing. */
async function forgetForms({
  transaction,
  dialect,
  ids,
}: Step & { ids: readonly string[] }): Promise<void> {
  if (ids.length === 0) return;
  const db: Kysely<LedgerSchema> = transaction;
  const forms = await db
    .selectFrom(
      dialect.rowsWith(
        db,
        "broadcasts",
        ids.map((transaction_id) => ({ transaction_id })),
      ),
    )
    .select("hash")
    .execute();
  if (forms.length === 0) return;
  const hashes = forms.map(({ hash }) => hash);
  await transaction.deleteFrom("broadcasts").where("hash", "in", dialect.among(hashes)).execute();
}

type Used = Pick<TransactionsTable, "id" | "network" | "relayer" | "nonce">;

/** Those whose relayer has a higher nonce. */
async function withoutHighest({
  transaction: db,
  dialect,
  final,
}: Step & { final: readonly Used[] }): Promise<Used[]> {
  const highest = new Map<string, number | undefined>();
  for (const { network, relayer } of final) {
    const name = `${network}/${relayer}`;
    if (highest.has(name)) continue;
    highest.set(name, await findHighestNonce({ db, dialect }, { network, relayer }));
  }
  return final.filter(({ network, relayer, nonce }) => {
    const last = highest.get(`${network}/${relayer}`);
    return last !== undefined && nonce < last;
  });
}
