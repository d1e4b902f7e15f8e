import { forProcess, type LedgerContext } from "../ledger-context.ts";
import { is } from "../states.ts";
import { idBound, nextAfter, type WalkOptions, type WalkStep } from "./walk.ts";

/**
 * Deletes final transactions with their signed forms. One step of a walk in the order of their
 * creation. A nonce must not be used again, so a relayer's highest one stays: the next is counted
 * from it, and the chain has used those below.
 *
 * A final row stays final, so no guard is needed against other processes.
 */
export function pruneTransactions(
  { write, dialect }: LedgerContext,
  options: WalkOptions,
): Promise<WalkStep> {
  return write(async (transaction) => {
    const oldest = await transaction
      .selectFrom("transactions")
      .select(["id", "state"])
      .where("id", ">", options.after)
      .where("id", "<", idBound(options))
      .orderBy("id")
      .limit(options.limit)
      .execute();
    const final = oldest.filter(({ state }) => state === "final").map(({ id }) => id);
    if (final.length > 0) {
      await transaction
        .deleteFrom("broadcasts")
        .where("transaction_id", "in", dialect.among(final))
        .execute();
    }
    const pruned =
      final.length === 0
        ? []
        : await transaction
            .deleteFrom("transactions")
            .where("id", "in", dialect.among(final))
            .where("state", "=", is("final"))
            .where(({ exists, selectFrom }) =>
              exists(
                selectFrom("transactions as later")
                  .select("later.id")
                  .whereRef("later.network", "=", "transactions.network")
                  .whereRef("later.relayer", "=", "transactions.relayer")
                  .whereRef("later.nonce", ">", "transactions.nonce"),
              ),
            )
            .returning("id")
            .execute();
    return { ended: pruned.length, after: nextAfter(oldest, options), keptNames: [] };
  }, forProcess);
}
