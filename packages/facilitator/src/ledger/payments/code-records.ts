import type { Address, AuthorizationId, Network } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";
import type { LedgerSchema } from "../schema.ts";
import { openStates } from "../schema.ts";

/** The record of a payer with code on one network. */
export interface PayerRecord {
  /** 0 where it is not refused. */
  refusedForMs: number;
  /** Its open payments, and deposits into channels, that may burn gas. */
  open: number;
  /**
   * Its payments that were confirmed since a transaction for it moved nothing, if one did. Our
   * transaction executed them, or none of ours tried them.
   */
  confirmed: number;
}

/** A payer on a network. Its record there proves nothing elsewhere: tokens may be worth nothing. */
export type RecordOwner = Pick<AuthorizationId, "network" | "payer">;

/** Text of a record's owner, for maps and for one order of locks. */
export function recordKey({ network, payer }: RecordOwner): string {
  return `${network}/${payer}`;
}

/** Reads a record. The count is one row, whatever the payer's history. */
export async function readRecord(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  owner: RecordOwner;
}): Promise<PayerRecord> {
  const { transaction, dialect, owner } = options;
  const { network, payer } = owner;
  const burner = await transaction
    .selectFrom("code_payers")
    .select(["refused_until", dialect.nowMs().as("now_ms")])
    .where("payer", "=", payer)
    .executeTakeFirst();
  const open = await transaction
    .selectFrom("payments")
    .select(({ fn }) => fn.countAll().as("count"))
    .where("payer", "=", payer)
    .where("network", "=", network)
    .where("state", "in", openStates)
    .where("is_alone", "=", 1)
    .executeTakeFirst();
  const deposits = await transaction
    .selectFrom("channel_deposits")
    .select(({ fn }) => fn.countAll().as("count"))
    .where("payer", "=", payer)
    .where("network", "=", network)
    .where("has_code", "=", 1)
    .where("state", "in", ["queued", "sent"])
    // As in the index's own condition.
    .where(sql<boolean>`ended_at is null`)
    .executeTakeFirst();
  const record = await transaction
    .selectFrom("code_records")
    .select("confirmed")
    .where("payer", "=", payer)
    .where("network", "=", network)
    .where("counts_from", ">=", burner?.refused_until ?? 0)
    .executeTakeFirst();
  return {
    refusedForMs: burner === undefined ? 0 : Math.max(0, burner.refused_until - burner.now_ms),
    open: Number(open?.count ?? 0) + Number(deposits?.count ?? 0),
    confirmed: record?.confirmed ?? 0,
  };
}

/**
 * Adds confirmed payments to their payers' records. None is added while its payer is refused.
 *
 * A burn ends a record without a write to it: the record counts from the end of an earlier refusal.
 * So a burn that commits after the read below ends this record too. Rows are locked in the order of
 * their keys, after those of payments.
 */
export async function addToRecords(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  /** The owner of each payment. */
  owners: readonly RecordOwner[];
}): Promise<void> {
  const { transaction, dialect, owners } = options;
  for (const { network, payer, count } of countOwners(owners)) {
    const burner = await transaction
      .selectFrom("code_payers")
      .select(["refused_until", dialect.nowMs().as("now_ms")])
      .where("payer", "=", payer)
      .executeTakeFirst();
    if (burner !== undefined && burner.refused_until > burner.now_ms) continue;
    const counts_from = burner?.refused_until ?? 0;
    await transaction
      .insertInto("code_records")
      .values({ network, payer, counts_from, confirmed: count })
      .onConflict((conflict) =>
        conflict.columns(["payer", "network"]).doUpdateSet((set) => ({
          counts_from,
          confirmed: set
            .case()
            .when("code_records.counts_from", "<", counts_from)
            .then(count)
            .else(set("code_records.confirmed", "+", count))
            .end(),
        })),
      )
      .execute();
  }
}

/**
 * Takes payments whose block has left the chain from their payers' records. One that had added
 * nothing is taken too. A record may be too small after a reorganisation, and never too large.
 */
export async function takeFromRecords(options: {
  transaction: Transaction<LedgerSchema>;
  owners: readonly RecordOwner[];
}): Promise<void> {
  for (const { network, payer, count } of countOwners(options.owners)) {
    await options.transaction
      .updateTable("code_records")
      .set((set) => ({
        confirmed: set
          .case()
          .when("confirmed", ">", count)
          .then(set("confirmed", "-", count))
          .else(0)
          .end(),
      }))
      .where("payer", "=", payer)
      .where("network", "=", network)
      .execute();
  }
}

/** Each owner once, with the number of its payments, in the order of keys. */
function countOwners(owners: readonly RecordOwner[]) {
  const counts = new Map<string, { network: Network; payer: Address; count: number }>();
  for (const owner of owners) {
    const { network, payer } = owner;
    const counted = counts.get(recordKey(owner));
    if (counted) counted.count += 1;
    else counts.set(recordKey(owner), { network, payer, count: 1 });
  }
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, counted]) => counted);
}
