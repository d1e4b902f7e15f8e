import type { Dialect, StoredAmount } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";

const key = ["network", "contract", "channel_id"] as const;
const dayMs = 86_400_000;
/** Numbers of the accounts, written out: a migration stays as it was. */
const [escrow, locked] = [7, 12];

/**
 * Channels in the books: their charges by day, the payouts of the escrow, and the block of an
 * entry. The previous release goes on beside this step, and sells by no channel.
 *
 * A ledger with channels from before this step begins with what they owe and hold now. No release
 * has sold by channels, so they are few.
 */
export async function bookChannels<Schema>(
  transaction: Transaction<Schema>,
  dialect: Dialect,
): Promise<void> {
  const { schema } = transaction;
  const { types } = dialect;
  await schema.alterTable("book_entries").addColumn("block_number", types.integer).execute();
  await schema
    .createTable("channel_sums")
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("contract", types.text, (column) => column.notNull())
    .addColumn("channel_id", types.text, (column) => column.notNull())
    .addColumn("day", types.integer, (column) => column.notNull())
    .addColumn("route_id", types.integer, (column) => column.notNull())
    .addColumn("is_reversal", types.integer, (column) => column.notNull())
    .addColumn("count", types.amount, (column) => column.notNull())
    .addColumn("amount", types.amount, (column) => column.notNull())
    .addPrimaryKeyConstraint("channel_sums_key", [...key, "day", "route_id", "is_reversal"])
    .execute();
  // Of no column that a charge changes, so PostgreSQL updates in place.
  await schema.createIndex("channel_sums_day").on("channel_sums").column("day").execute();
  await schema
    .createTable("channel_payouts")
    .addColumn("id", types.text, (column) => column.primaryKey().notNull())
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("contract", types.text, (column) => column.notNull())
    .addColumn("receiver", types.text, (column) => column.notNull())
    .addColumn("token", types.text, (column) => column.notNull())
    .addColumn("amount", types.amount, (column) => column.notNull())
    .addColumn("transaction_hash", types.text, (column) => column.notNull())
    .addColumn("log_index", types.integer, (column) => column.notNull())
    .addColumn("block_number", types.integer, (column) => column.notNull())
    .addColumn("block_hash", types.text, (column) => column.notNull())
    .addUniqueConstraint("channel_payouts_log", ["network", "transaction_hash", "log_index"])
    .execute();
  await schema
    .createTable("channel_payout_progress")
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("contract", types.text, (column) => column.notNull())
    .addColumn("block_number", types.integer, (column) => column.notNull())
    .addPrimaryKeyConstraint("channel_payout_progress_key", ["network", "contract"])
    .execute();
  // The books, and people, know a channel by its id alone.
  await schema.createIndex("channel_terms_id").on("channel_terms").column("channel_id").execute();
  await openBooks(transaction, dialect);
}

interface KnownChannel {
  network: string;
  contract: string;
  channel_id: string;
  token: string;
  charged: StoredAmount;
  lost: StoredAmount;
  balance: StoredAmount | null;
  claimed: StoredAmount | null;
  block_number: number | null;
}

async function openBooks<Schema>(
  transaction: Transaction<Schema>,
  { amount, nowMs }: Dialect,
): Promise<void> {
  const { rows } = await sql<KnownChannel>`
    select channels.network, channels.contract, channels.channel_id, channel_terms.token,
      channels.charged, channels.lost, channel_states.balance, channel_states.claimed,
      channel_states.block_number
    from channels join channel_terms using (network, contract, channel_id)
      left join channel_states using (network, contract, channel_id)
  `.execute(transaction);
  const clock = await sql<{ now: number }>`select ${nowMs()} as now`.execute(transaction);
  const now = Number(clock.rows[0]?.now);
  for (const { network, contract, channel_id, token, ...row } of rows) {
    const [charged, lost] = [amount.decode(row.charged), amount.decode(row.lost)];
    const claimed = row.claimed === null ? charged : amount.decode(row.claimed);
    const held = row.balance === null ? 0n : amount.decode(row.balance) - claimed;
    const owed = charged - claimed - lost;
    if (owed !== 0n) {
      await sql`
        insert into channel_sums (network, contract, channel_id, day, route_id, is_reversal, count,
          amount)
        values (${network}, ${contract}, ${channel_id}, ${Math.floor(now / dayMs)}, 0,
          ${owed < 0n ? 1 : 0}, ${amount.encode(1n)}, ${amount.encode(owed < 0n ? -owed : owed)})
      `.execute(transaction);
    }
    if (held <= 0n) continue;
    await sql`
      insert into book_entries (posted_at, route_id, pay_to_id, debit, credit, source_id, amount,
        network, asset, block_number)
      values (${now}, null, null, ${locked}, ${escrow}, ${channel_id}, ${amount.encode(held)},
        ${network}, ${token}, ${row.block_number})
    `.execute(transaction);
  }
}
