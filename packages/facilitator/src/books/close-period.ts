import { setTimeout as sleep } from "node:timers/promises";
import { sql, type Transaction } from "kysely";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import type { LedgerSchema } from "../ledger/schema.ts";
import { is } from "../ledger/states.ts";
import { OperationRefusedError } from "../operators/operation-refused-error.ts";

/** Names in a refusal, at most. */
const maxNames = 20;
/** Attempts to exclude writers: a posting holds the table for milliseconds. */
const maxAttempts = 400;
const attemptPauseMs = 10;
/** Where channels are sold by, a period on PostgreSQL is closed this long after its end. */
const sumsPauseMs = 60_000;

/** A closed period. */
export interface ClosedPeriod {
  /** Unix milliseconds: its end, exclusive. */
  closedTo: number;
  /** False where it had been closed before. */
  isNew: boolean;
}

/**
 * Closes the books up to a time: from then on nothing is posted before it. A later reversal of an
 * entry in it is posted in the open period. A repetition changes nothing.
 *
 * The racers are postings. Each reads the end of the closed period in its own statement. On
 * PostgreSQL they are excluded for the moment: those before have ended, and those after read the
 * new end. SQLite has one writer at a time.
 *
 * @throws OperationRefusedError where the period is not over or not all final, or payments from
 * before the books are not posted; DatabaseError
 */
export async function closePeriod(
  ledger: Pick<LedgerContext, "dialect" | "write">,
  { until }: { until: number },
): Promise<ClosedPeriod> {
  for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
    const closed = await ledger.write((transaction) => tryToClose(ledger, transaction, until));
    if (closed !== undefined) return closed;
    await sleep(attemptPauseMs);
  }
  throw new OperationRefusedError("busy", "Payments are posted all the time: try again.");
}

async function tryToClose(
  { dialect }: Pick<LedgerContext, "dialect">,
  transaction: Transaction<LedgerSchema>,
  until: number,
): Promise<ClosedPeriod | undefined> {
  // In the order of posting of earlier payments, which takes the key before it writes.
  await dialect.lockKey(transaction, "coinslot:books");
  if (!(await dialect.tryLockTable(transaction, "book_entries"))) return undefined;
  const { closed_to } = await transaction
    .selectFrom("book_periods")
    .select((row) => row.fn.max("closed_to").as("closed_to"))
    .executeTakeFirstOrThrow();
  const closedTo = Number(closed_to ?? 0);
  if (until === closedTo) return { closedTo, isNew: false };
  if (until < closedTo) throw refuse("closed", `The books are closed up to ${dayOf(closedTo)}.`);
  const now = await readNow({ dialect }, transaction);
  // A charge of a channel reads its day, and adds itself to that day's sum, in two statements.
  const sumsMs = dialect.engine === "postgres" && (await hasSums(transaction)) ? sumsPauseMs : 0;
  if (until > now - sumsMs)
    throw refuse("not_over", `The period up to ${dayOf(until)} is not over yet.`);
  const { posted_to, last_id } = await transaction
    .selectFrom("book_progress")
    .selectAll()
    .executeTakeFirstOrThrow();
  if (posted_to < last_id) {
    throw refuse("unfinished", "Payments from before the books are still being posted: try later.");
  }
  const pending = await findPending(transaction, until);
  if (pending.length > 0) {
    const more = pending.length > maxNames ? ", and more" : "";
    const names = pending.slice(0, maxNames).join(", ");
    throw refuse("not_final", `Not final yet in the period: ${names}${more}.`);
  }
  await transaction
    .insertInto("book_periods")
    .values({ closed_to: until, closed_at: now, digest: null })
    .execute();
  return { closedTo: until, isNew: true };
}

/** Payments, refunds, transactions and channels that were posted before a time, and not finally. */
async function findPending(
  transaction: Transaction<LedgerSchema>,
  until: number,
): Promise<string[]> {
  const limit = maxNames + 1;
  const posted = (id: string) =>
    sql<boolean>`exists (
      select 1 from book_entries where source_id = ${sql.ref(id)} and posted_at < ${until}
    )`;
  const payments = await transaction
    .selectFrom("payments")
    .select("id")
    .where("state", "=", is("confirmed"))
    .where("final_at", "is", null)
    .where(posted("payments.id"))
    .limit(limit)
    .execute();
  const refunds = await transaction
    .selectFrom("refunds")
    .select("id")
    .where("state", "=", "confirmed")
    .where("operation_id", "is", null)
    .where(posted("refunds.id"))
    .limit(limit)
    .execute();
  const transactions = await transaction
    .selectFrom("transactions")
    .select("id")
    .where("state", "=", is("settled"))
    .where(posted("transactions.id"))
    .limit(limit)
    .execute();
  const channels = await transaction
    .selectFrom("channel_states")
    .select("channel_id")
    .where("is_moving", "=", sql.lit(1))
    .where(
      sql<boolean>`exists (
        select 1 from book_entries where source_id = channel_id and posted_at < ${until}
          and book_entries.block_number > coalesce(final_number, -1)
      )`,
    )
    .limit(limit)
    .execute();
  return [
    ...channels.map(({ channel_id }) => `channel ${channel_id}`),
    ...payments.map(({ id }) => `payment ${id}`),
    ...refunds.map(({ id }) => `refund ${id}`),
    ...transactions.map(({ id }) => `transaction ${id}`),
  ];
}

async function hasSums(transaction: Transaction<LedgerSchema>): Promise<boolean> {
  const row = await transaction
    .selectFrom("channel_sums")
    .select("day")
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Keeps the digest of a closed period, once. It says later whether the period has changed. */
export async function sealPeriod(
  { write }: Pick<LedgerContext, "write">,
  { until, digest }: { until: number; digest: string },
): Promise<void> {
  await write((transaction) =>
    transaction
      .updateTable("book_periods")
      .set({ digest })
      .where("closed_to", "=", until)
      .where("digest", "is", null)
      .execute(),
  );
}

async function readNow(
  { dialect }: Pick<LedgerContext, "dialect">,
  transaction: Transaction<LedgerSchema>,
): Promise<number> {
  const { rows } = await sql<{ now: number }>`select ${dialect.nowMs()} as now`.execute(
    transaction,
  );
  return Number(rows[0]?.now);
}

function refuse(code: string, message: string): OperationRefusedError {
  return new OperationRefusedError(code, message);
}

function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}
