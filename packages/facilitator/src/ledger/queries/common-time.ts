import type { LedgerContext } from "../ledger-context.ts";

/** Clocks that differ by less do no harm: the lead of a payment is a second. */
const toleratedMs = 10_000;

/**
 * The earlier one of this process's clock and the database's, in Unix milliseconds. A process ends
 * by time what belongs to others too, and its own clock may be ahead. A SQLite file has one
 * process, and so one clock.
 */
export async function readCommonTime(
  ledger: Pick<LedgerContext, "db" | "dialect" | "now">,
): Promise<number> {
  return Math.min(ledger.now(), await readDatabaseTime(ledger));
}

/**
 * A block's time, in Unix seconds, as far as this process's clock or the database's has come. One
 * node alone says that time, and may be wrong by any amount.
 */
export async function readBlockTime(
  ledger: Pick<LedgerContext, "db" | "dialect" | "now">,
  { timestamp }: { timestamp: bigint },
): Promise<bigint> {
  const inSeconds = (ms: number) => BigInt(Math.floor(ms / 1000));
  if (timestamp <= inSeconds(ledger.now())) return timestamp;
  const latest = inSeconds(Math.max(ledger.now(), await readDatabaseTime(ledger)));
  return timestamp < latest ? timestamp : latest;
}

/** A sentence that names a clock which differs from the database's; `undefined` where none does. */
export async function findClockFault(
  ledger: Pick<LedgerContext, "db" | "dialect" | "now">,
): Promise<string | undefined> {
  const aheadMs = ledger.now() - (await readDatabaseTime(ledger));
  if (Math.abs(aheadMs) < toleratedMs) return undefined;
  const seconds = Math.round(Math.abs(aheadMs) / 1000);
  const where = aheadMs > 0 ? "ahead of" : "behind";
  return `this machine's clock is ${seconds} s ${where} the database's: set both by NTP`;
}

/** The database's clock, in Unix milliseconds. */
export async function readDatabaseNow({
  db,
  dialect,
}: Pick<LedgerContext, "db" | "dialect">): Promise<number> {
  const { now_ms } = await db.selectNoFrom(dialect.nowMs().as("now_ms")).executeTakeFirstOrThrow();
  return Number(now_ms);
}

async function readDatabaseTime({
  db,
  dialect,
  now,
}: Pick<LedgerContext, "db" | "dialect" | "now">): Promise<number> {
  return dialect.engine === "sqlite" ? now() : readDatabaseNow({ db, dialect });
}
