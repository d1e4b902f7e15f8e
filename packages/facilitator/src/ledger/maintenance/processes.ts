import { sql, type Transaction } from "kysely";
import type { LedgerContext, LedgerReads } from "../ledger-context.ts";
import { ledgerMigrations } from "../migrations/ledger-migrations.ts";
import { type LedgerPayment, toLedgerPayment } from "../payments/ledger-payment.ts";
import type { LedgerSchema } from "../schema.ts";
import { givenUp, is } from "../states.ts";
import { isSilenceDeath, selectAlive } from "./living-processes.ts";
import { isYoung, noteHeartbeat } from "./sure-heartbeats.ts";

/**
 * The ledger has lost this process's last heartbeat. It was restored from a backup, or is a replica
 * that lacked its last writes. Or others have forgotten this process in a long silence. Its rows
 * are older than what this process knows of them: all that it holds is over.
 */
export class LedgerRestoredError extends Error {
  override readonly name = "LedgerRestoredError";

  constructor() {
    super(
      "The ledger does not have what this process has written: it was restored from a backup, or a replica without the last writes has taken over",
    );
  }
}

/**
 * Writes this process's heartbeat, on the database's clock.
 *
 * @throws LedgerRestoredError if the ledger has an older one, or none, of this process.
 */
export async function sendHeartbeat(ledger: LedgerContext): Promise<void> {
  const { heartbeat, processId } = ledger;
  const sentAt = ledger.now();
  const { living, writtenAt } = await ledger.write(async (transaction) => {
    const rows = await selectAlive(ledger, transaction).execute();
    const writtenAt =
      heartbeat.writtenAt === undefined
        ? await insertHeartbeat(ledger, transaction)
        : await updateHeartbeat(ledger, transaction);
    if (writtenAt === undefined || heartbeat.isMissing) throw new LedgerRestoredError();
    const ids = new Set(rows.map(({ id }) => id));
    // The first heartbeat, or one after a silence in which the row may have been deleted.
    if (!ids.has(processId)) await nameRelayers(ledger, transaction);
    return { living: ids, writtenAt };
  });
  noteHeartbeat(ledger, writtenAt);
  heartbeat.living = [...living.add(processId)];
  const now = ledger.now();
  // By this clock: on the database's, a reservation may have renewed the heartbeat just before.
  if (!isYoung(ledger, now)) heartbeat.lapsedAt = Math.max(now, heartbeat.sentAt);
  heartbeat.sentAt = sentAt;
  heartbeat.writtenAt = writtenAt;
}

async function nameRelayers(
  { processId, relayers }: LedgerContext,
  transaction: Transaction<LedgerSchema>,
): Promise<void> {
  await transaction
    .updateTable("processes")
    .set({ relayers })
    .where("id", "=", processId)
    .execute();
}

/**
 * Whether this process is the one of the living that works for all of them, as of its last
 * heartbeat. For a moment there may be two, or none: that work can be done twice, and can wait.
 */
export function isFirstProcess({ heartbeat, processId }: LedgerContext): boolean {
  return heartbeat.living.every((id) => processId <= id);
}

/** A step that the previous release could not bear waits until no heartbeat has a lower one. */
const schemaVersion = ledgerMigrations.migrations.length;

/**
 * Writes this process's heartbeat, unless the last one is no older than `freshMs`.
 *
 * A row that lacks the last heartbeat is left for `sendHeartbeat` to find. After a silence it is
 * written anew, and noted: others may have deleted it.
 */
export async function renewHeartbeat(
  ledger: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  { freshMs }: { freshMs: number },
): Promise<void> {
  const writtenAt = await updateHeartbeat(ledger, transaction, freshMs);
  if (writtenAt !== undefined) return noteHeartbeat(ledger, writtenAt);
  if (isYoung(ledger, ledger.now())) return;
  const { heartbeat, processId } = ledger;
  const found = await transaction
    .selectFrom("processes")
    .select("id")
    .where("id", "=", processId)
    .where("heartbeat_at", ">=", heartbeat.writtenAt ?? 0)
    .executeTakeFirst();
  if (found !== undefined) return;
  heartbeat.isMissing = heartbeat.writtenAt !== undefined;
  noteHeartbeat(ledger, await insertHeartbeat(ledger, transaction));
}

/**
 * @param freshMs a heartbeat that is no older stays
 * @returns what was written; `undefined` where the row lacks the last heartbeat, or a fresh one
 * stays
 */
async function updateHeartbeat(
  { dialect, processId, heartbeat }: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  freshMs?: number,
): Promise<number | undefined> {
  const last = transaction
    .updateTable("processes")
    .set({ heartbeat_at: dialect.nowMs() })
    .where("id", "=", processId)
    .where("heartbeat_at", ">=", heartbeat.writtenAt ?? 0)
    .returning("heartbeat_at");
  // Without it also where the database's clock was put back.
  const due =
    freshMs === undefined
      ? last
      : last.where("heartbeat_at", "<=", sql<number>`${dialect.nowMs()} - ${sql.lit(freshMs)}`);
  return (await due.executeTakeFirst())?.heartbeat_at;
}

async function insertHeartbeat(
  { dialect, processId }: LedgerContext,
  transaction: Transaction<LedgerSchema>,
): Promise<number> {
  const heartbeat_at = dialect.nowMs();
  const { heartbeat_at: written } = await transaction
    .insertInto("processes")
    .values({ id: processId, heartbeat_at, schema_version: schemaVersion })
    .onConflict((conflict) => conflict.column("id").doUpdateSet({ heartbeat_at }))
    .returning("heartbeat_at")
    .executeTakeFirstOrThrow();
  return written;
}

/**
 * Returns whether a process runs whose program knows fewer migrations than this one. None can start
 * any more, for it refuses the migrated ledger.
 */
export async function runsOlderProgram({ db }: LedgerReads): Promise<boolean> {
  const older = await db
    .selectFrom("processes")
    .select("id")
    .where((where) =>
      where.or([where("schema_version", "is", null), where("schema_version", "<", schemaVersion)]),
    )
    .executeTakeFirst();
  return older !== undefined;
}

/** Records that this process ends, so that no other waits for its heartbeat to time out. */
export function leaveLedger({ write, processId }: LedgerContext): Promise<void> {
  return write((transaction) => forgetProcesses({ transaction, target: { id: processId } }));
}

/** Forgets processes: one that ends in order, or all others, where only one can be. */
export async function forgetProcesses(options: {
  transaction: Transaction<LedgerSchema>;
  target: { id: string } | { allBut: string };
}): Promise<void> {
  const { transaction, target } = options;
  await transaction
    .deleteFrom("processes")
    .where("id", "id" in target ? "=" : "!=", "id" in target ? target.id : target.allBut)
    .execute();
}

/**
 * Ends the holdings of dead processes: `reserved` → `released`, and `queued` without a kept answer
 * → `released`, for their answers died with them. A payment that had failed before is `failed`
 * again. A payment that a transaction carries, or has carried since it was reserved, is left to the
 * chain. The handler may have run for a reserved one, so a run is counted. `enqueue` has counted it
 * for a queued one. Where the silence of others says nothing, only processes without a row are
 * dead.
 *
 * The racer is the owner itself, frozen and awake again: its token is gone, so its `enqueue` finds
 * nothing. A planner that is about to store a transaction finds `queued` gone, and stores nothing.
 *
 * @returns the payments that were queued, in their current state, so that their waiters can be
 * notified.
 */
export function releaseAbandoned(
  ledger: LedgerContext,
): Promise<{ reserved: number; queued: LedgerPayment[] }> {
  return ledger.write((transaction) => release(ledger, transaction));
}

async function release(
  ledger: LedgerContext,
  transaction: Transaction<LedgerSchema>,
): Promise<{ reserved: number; queued: LedgerPayment[] }> {
  const { dialect, heartbeatLeaseMs } = ledger;
  const isSure = await isSilenceDeath(ledger, transaction);
  if (isSure) {
    // Rows of the long dead are of no use: a process without one counts as dead.
    const longAgo = sql<number>`${dialect.beginMs()} - ${sql.lit(10 * heartbeatLeaseMs)}`;
    await transaction.deleteFrom("processes").where("heartbeat_at", "<", longAgo).execute();
  }
  const alive = isSure
    ? selectAlive(ledger, transaction)
    : transaction.selectFrom("processes").select("id");
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
    .set((set) => ({ state: givenUp(set), token: null, owner: null }))
    .where("state", "=", is("queued"))
    // No transaction has carried it since it was reserved.
    .where("submitted_at", "is", null)
    // A request that was answered "pending" left it without an owner: the chain decides.
    .where("owner", "is not", null)
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
