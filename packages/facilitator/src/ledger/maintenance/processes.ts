import type { Dialect } from "@coinslot/storage";
import { type Kysely, sql, type Transaction } from "kysely";
import { type LedgerPayment, toLedgerPayment } from "../payments/ledger-payment.ts";
import type { LedgerSchema } from "../schema.ts";
import { givenUp, is } from "../states.ts";

/** Writes a process's heartbeat, on the database's clock, unless it wrote one a moment ago. */
export async function sendHeartbeat(options: {
  db: Kysely<LedgerSchema>;
  dialect: Dialect;
  processId: string;
  /** Highest age of its last heartbeat. Default 0: it is renewed in any case. */
  freshMs?: number;
}): Promise<void> {
  const { db, dialect, processId, freshMs = 0 } = options;
  await db
    .insertInto("processes")
    .values({ id: processId, heartbeat_at: dialect.nowMs() })
    .onConflict((conflict) =>
      conflict
        .column("id")
        .doUpdateSet({ heartbeat_at: dialect.nowMs() })
        .where(
          "processes.heartbeat_at",
          "<=",
          sql<number>`${dialect.nowMs()} - ${sql.lit(freshMs)}`,
        ),
    )
    .execute();
}

/** Forgets processes: one that ends in order, or all others, where only one can be. */
export async function forgetProcesses(options: {
  transaction: Transaction<LedgerSchema>;
  which: { id: string } | { allBut: string };
}): Promise<void> {
  const { transaction, which } = options;
  await transaction
    .deleteFrom("processes")
    .where("id", "id" in which ? "=" : "!=", "id" in which ? which.id : which.allBut)
    .execute();
}

/**
 * Ends the holdings of dead processes: `reserved` → `released`, and `queued` without a kept answer
 * → `released`, for their answers died with them. A payment that had failed before is `failed`
 * again. A payment that a transaction carries, or has carried since it was reserved, is left to the
 * chain. The handler may have run for each of them, so a run is counted.
 *
 * The racer is the owner itself, frozen and awake again: its token is gone, so its `enqueue` finds
 * nothing. A planner that is about to store a transaction finds `queued` gone, and stores nothing.
 *
 * @returns the payments that were queued, in their current state, so that their waiters can be
 * notified.
 */
export async function releaseAbandoned(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  heartbeatLeaseMs: number;
}): Promise<{ reserved: number; queued: LedgerPayment[] }> {
  const { transaction, dialect, heartbeatLeaseMs } = options;
  // Rows of the long dead are of no use: a process without one counts as dead.
  await transaction
    .deleteFrom("processes")
    .where("heartbeat_at", "<", sql<number>`${dialect.nowMs()} - ${sql.lit(10 * heartbeatLeaseMs)}`)
    .execute();
  const alive = transaction
    .selectFrom("processes")
    .select("id")
    .where((where) =>
      where("heartbeat_at", ">", sql<number>`${dialect.nowMs()} - ${sql.lit(heartbeatLeaseMs)}`),
    );
  const reserved = await transaction
    .updateTable("payments")
    .set((set) => ({
      state: givenUp(set),
      token: null,
      owner: null,
      runs: set("runs", "+", 1),
    }))
    .where("state", "=", is("reserved"))
    .where("owner", "not in", alive)
    .executeTakeFirst();
  const queued = await transaction
    .updateTable("payments")
    .set((set) => ({
      state: givenUp(set),
      token: null,
      owner: null,
      runs: set("runs", "+", 1),
    }))
    .where("state", "=", is("queued"))
    // No transaction has carried it since it was reserved.
    .where("submitted_at", "is", null)
    .where("owner", "not in", alive)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom("answers")
            .select("answers.payment_id")
            .whereRef("answers.payment_id", "=", "payments.id"),
        ),
      ),
    )
    .returningAll()
    .execute();
  const released = queued.filter(({ state }) => state === "released").map(({ id }) => id);
  if (released.length > 0) {
    await transaction.deleteFrom("orders").where("payment_id", "in", released).execute();
  }
  return {
    reserved: Number(reserved.numUpdatedRows),
    queued: queued.map((row) => toLedgerPayment(row, dialect)),
  };
}
