import { type RawBuilder, type SqlBool, sql, type Transaction } from "kysely";
import type { LedgerContext } from "../ledger-context.ts";
import type { LedgerSchema } from "../schema.ts";
import { areHeartbeatsSure } from "./sure-heartbeats.ts";

type Living = Pick<LedgerContext, "dialect" | "heartbeatLeaseMs">;

/** Ids of the processes whose heartbeat counted when the transaction began. */
export function selectAlive(living: Living, transaction: Transaction<LedgerSchema>) {
  return transaction.selectFrom("processes").select("id").where(isAlive(living));
}

/**
 * Whether the heartbeat of a row of `processes` counted when the transaction began. One more than a
 * lease ahead does not: the database's clock was put back, and the dead would live until that time
 * comes again. The later of both times decides, since a transaction may stand still, or see such a
 * change.
 */
export function isAlive({ dialect, heartbeatLeaseMs }: Living): RawBuilder<SqlBool> {
  const beat = sql.ref("processes.heartbeat_at");
  const lease = sql.lit(heartbeatLeaseMs);
  const begin = dialect.beginMs();
  return sql<SqlBool>`(${beat} > ${begin} - ${lease} and (${beat} <= ${begin} + ${lease} or ${beat} <= ${dialect.nowMs()} + ${lease}))`;
}

/**
 * Whether an old heartbeat of another process shows its death. Not where the database may have
 * stood still for all of them: this process's own heartbeat is half a lease old, too, or was so
 * within the last lease. The other half of the lease is for the interval between the heartbeats of
 * others.
 *
 * The racer is a standstill in the middle of the transaction. All times are compared with its
 * begin.
 *
 * A command of the operator sends no heartbeat, and lives too briefly to see those of others. It
 * takes silence for death. A process that wakes up looks for its token before it answers.
 */
export async function isSilenceDeath(
  ledger: LedgerContext,
  transaction: Transaction<LedgerSchema>,
): Promise<boolean> {
  const { processId, heartbeatLeaseMs, heartbeat } = ledger;
  if (heartbeat.writtenAt === undefined) return true;
  if (!areHeartbeatsSure(ledger)) return false;
  const halfLease = { ...ledger, heartbeatLeaseMs: Math.floor(heartbeatLeaseMs / 2) };
  const self = await selectAlive(halfLease, transaction)
    .where("id", "=", processId)
    .executeTakeFirst();
  return self !== undefined;
}

/** Whether a process may live. One without a row has left, or was silent for ten leases. */
export async function mayLive(
  ledger: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  processId: string,
): Promise<boolean> {
  const row = await transaction
    .selectFrom("processes")
    .select("id")
    .where("id", "=", processId)
    .executeTakeFirst();
  if (row === undefined) return false;
  const alive = await selectAlive(ledger, transaction)
    .where("id", "=", processId)
    .executeTakeFirst();
  return alive !== undefined || !(await isSilenceDeath(ledger, transaction));
}
