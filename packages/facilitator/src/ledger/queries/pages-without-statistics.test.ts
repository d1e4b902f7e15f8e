import { type Kysely, sql, type Transaction } from "kysely";
import { hexToBytes } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { asset, network } from "../../testing/ledger-payments.ts";
import { copyMigratedLedger } from "../../testing/migrated-ledger.ts";
import { type LedgerDatabase, openLedger } from "../open-ledger.ts";
import type { LedgerSchema } from "../schema.ts";
import { listPayments, type PaymentFilter } from "./list-payments.ts";

/** The older half is archived, and of one payer. Each twentieth failed. */
const payments = 40_000;
const kept = payments / 2;
const payer = `0x${"ab".repeat(20)}` as const;
const limit = 100;
/** Rows and index entries for each payment of a page: of twenty, one failed. */
const perRow = 60;

/** The id of a payment. Its time is its number, so all are of one day. */
const idOf = (number: number) => number.toString(16).padStart(12, "0").padEnd(44, "0");
const isFailed = (number: number) => number % 20 === 0;

const cursors: [string, number][] = [
  ["kept", payments - 1_000],
  ["archived", kept - 1_000],
];
const filters: [string, PaymentFilter][] = [
  ["all payments", {}],
  ["confirmed payments", { state: "confirmed" }],
  ["failed payments", { state: "failed" }],
  ["payments of a network and token", { network, asset }],
  ["failed payments of a token", { state: "failed", asset }],
  ["payments of a time", { createdFrom: 100, createdBefore: payments - 100 }],
];

describe("on postgres without statistics, a page costs what it returns", () => {
  let place: Awaited<ReturnType<typeof copyMigratedLedger>>;
  let opened: LedgerDatabase;

  beforeAll(async () => {
    place = await copyMigratedLedger("postgres");
    opened = await openLedger({ url: place.url, processId: "one" });
    await opened.database.transaction(fill);
  });

  afterAll(async () => {
    await opened.close();
    await place.drop();
  });

  describe.each(cursors)("behind a payment that is %s", (_where, cursor) => {
    it.each(filters)("of %s", (_filter, filter) => expectPage(filter, cursor));
  });

  it("of the archived payments of a payer", () => expectPage({ payer }, kept - 1_000));

  async function expectPage(filter: PaymentFilter, cursor: number): Promise<void> {
    const { dialect } = opened.database;
    const page = { ...filter, cursor: idOf(cursor), limit };
    const [found, read] = await opened.database.transaction(async (db) => {
      // Rows that parallel workers read are counted elsewhere: planned, none of them starts.
      await sql`set local max_parallel_workers = 0`.execute(db);
      const before = await countRead(db);
      const { payments } = await listPayments({ db, dialect }, page);
      return [payments, (await countRead(db)) - before];
    });
    const matching = Array.from({ length: cursor }, (_, index) => cursor - 1 - index).filter(
      (number) => filter.state === undefined || isFailed(number) === (filter.state === "failed"),
    );
    expect(found.map(({ id }) => id)).toEqual(matching.slice(0, limit).map(idOf));
    expect(read).toBeLessThan(perRow * limit);
  }
});

const tables = ["payments", "unpaid_payments", "archived_payments"] as const;

/** The rows and index entries that a transaction has read so far. */
async function countRead(db: Kysely<LedgerSchema>): Promise<number> {
  const { rows } = await sql<{ read: string }>`
    select sum(seq_tup_read + idx_tup_fetch + (
      select sum(pg_stat_get_xact_tuples_returned(indexrelid)) from pg_index where indrelid = relid
    )) as read from pg_stat_xact_user_tables where relname in (${sql.join([...tables])})
  `.execute(db);
  return Number(rows[0]?.read);
}

/** A ledger as a restore leaves it. */
async function fill(db: Transaction<LedgerSchema>): Promise<void> {
  for (const table of tables) {
    await sql`alter table ${sql.table(table)} set (autovacuum_enabled = false)`.execute(db);
  }
  // A restore writes the sums as they are: no trigger runs.
  await sql`set local session_replication_role = replica`.execute(db);
  const id = sql`rpad(lpad(to_hex(n), 12, '0'), 44, '0')`;
  const state = sql`case when n % 20 = 0 then 'failed' else 'confirmed' end`;
  const times = sql`case when n % 20 > 0 then n end, case when n % 20 > 0 then n end`;
  await sql`
    insert into payments (id, network, asset, payer, nonce, value, valid_before, state, fingerprint,
      carried, is_alone, created_at, final_at, delivered_at)
    select ${id}, ${network}, ${asset}, '0x' || lpad(to_hex(n % 500), 40, '0'),
      '0x' || lpad(to_hex(n), 64, '0'), 10, 1, ${state}, 'GET /a', 1, 0, n, ${times}
    from generate_series(${sql.lit(kept)}, ${sql.lit(payments)}) n
  `.execute(db);
  await sql`
    insert into archived_payments (id, network, asset, payer, nonce, value, valid_before, state,
      scheme, carried, runs, created_at, final_at, delivered_at)
    select ${id}, ${network}, ${hexToBytes(asset)}, ${hexToBytes(payer)}, int8send(n), 10, 1,
      ${state}, 'eip3009', 1, 1, n, ${times}
    from generate_series(0, ${sql.lit(kept - 1)}) n
  `.execute(db);
  await sql`
    insert into unpaid_payments (state, payment_id)
    select state, id from payments where state = 'failed'
  `.execute(db);
  await sql`
    insert into payment_sums (day, network, asset, route_id, state, count, amount, deleted_count,
      deleted_amount)
    select 0, network, asset, 0, state, count(*), sum(value), 0, 0 from payments
    group by network, asset, state
  `.execute(db);
}
