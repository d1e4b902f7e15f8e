import type { Hex } from "@coinslot/protocol";
import { CompiledQuery, type Kysely, sql } from "kysely";
import { numberToHex } from "viem";
import { describe, expect, it } from "vitest";
import { readChargesOf } from "../../books/read-charges.ts";
import { listRoutesOperation } from "../../reads/routes-operation.ts";
import { todayOperation } from "../../reads/today/today-operation.ts";
import { statsOperation } from "../../stats/stats-operation.ts";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { runRead } from "../../testing/run-read.ts";
import { engines } from "../../testing/settling-devnet.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { inSnapshot } from "../ledger-reads.ts";
import { foldCharges } from "../maintenance/fold-charges.ts";
import type { LedgerSchema } from "../schema.ts";

const dayMs = 86_400_000;
const today = Math.floor(Date.now() / dayMs);
/** Two, for midnight may pass. */
const days = [today, today + 1];
const channels = 5_000;
const routes = 3;
const network = "eip155:9745";
const contract: Hex = `0x${"40".repeat(20)}`;
const token = numberToHex(5, { size: 20 });

/** Charges each channel once a day, and takes a part back from every tenth. */
async function fill({ db, dialect }: Pick<LedgerContext, "db" | "dialect">): Promise<void> {
  const { encode } = dialect.amount;
  const numbers =
    dialect.engine === "postgres"
      ? sql`(select n, lpad(to_hex(n), 64, '0') as digits from generate_series(1, ${channels}) as n)`
      : sql`(with recursive series (n) as (select 1 union all select n + 1 from series where n < ${channels})
          select n, printf('%064x', n) as digits from series)`;
  await sql`
    insert into channel_terms (network, contract, channel_id, payer, payer_authorizer, receiver,
      receiver_authorizer, token, withdraw_delay, salt, created_at)
    select ${network}, ${contract}, '0x' || digits, ${contract}, ${contract}, ${contract},
      ${contract}, ${token}, 900, ${contract}, 1 from ${numbers} as numbers
  `.execute(db);
  const post = (day: number, isReversal: 0 | 1, { count, amount }: typeof charged, every: number) =>
    sql`
      insert into channel_sums (network, contract, channel_id, day, route_id, is_reversal, count,
        amount)
      select ${network}, ${contract}, '0x' || digits, ${sql.lit(day)}, n % ${sql.lit(routes)},
        ${sql.lit(isReversal)}, ${encode(BigInt(count))}, ${encode(amount)}
      from ${numbers} as numbers where n % ${sql.lit(every)} = 0
    `.execute(db);
  for (const day of days) {
    await post(day, 0, { count: 2, amount: 300n }, 1);
    await post(day, 1, { count: 1, amount: 100n }, 10);
  }
}

/** Of one day. */
const charged = { count: 2 * channels, amount: 300n * 5_000n - 100n * 500n };

/** The reads that show the charges of all channels: of two days, and of today. */
const reads: Record<string, (ledger: LedgerContext) => Promise<typeof charged>> = {
  today: async (ledger) => {
    const { charges, charged: monies } = (await runRead(todayOperation, ledger, {})).today.channels;
    return { count: charges, amount: sum(monies.map(({ value }) => BigInt(value))) };
  },
  routes: async (ledger) => {
    const list = (await runRead(listRoutesOperation, ledger, {})).routes;
    const monies = list.flatMap((route) => route.charged.map(({ value }) => BigInt(value)));
    const count = list.reduce((all, { charges }) => all + charges, 0);
    return { count: count / days.length, amount: sum(monies) / BigInt(days.length) };
  },
  totals: async (ledger) => {
    const { money } = await runRead(statsOperation, ledger, {});
    const count = money.reduce((all, { charges }) => all + charges, 0);
    const amount = sum(money.map(({ income }) => BigInt(income)));
    return { count: count / days.length, amount: amount / BigInt(days.length) };
  },
};

function sum(values: readonly bigint[]): bigint {
  return values.reduce((all, value) => all + value, 0n);
}

describe.each(engines)("the sums of charges, on %s", (engine) => {
  const { join, read } = ledgerForEachTest(engine);

  it("are the same before, while and after the charges are added up", async () => {
    const ledger = await join("one");
    await fill(ledger);
    const sums = () => readChargesOf(ledger, { day: today, before: today + days.length });
    const before = await sums();
    expect(sum(before.map(({ count }) => BigInt(count)))).toBe(2n * (10_000n + 500n));

    expect(await foldCharges(ledger, 3_000)).toBe(true);
    expect(await sums()).toEqual(before);
    while (await foldCharges(ledger, 10_000));
    expect(await sums()).toEqual(before);
    expect(await read(sql`select id from charge_changes`)).toEqual([]);

    // As after the migration of a ledger with these charges.
    await ledger.db.deleteFrom("charge_sums").execute();
    const start = { network: "", contract: "", channel_id: "", is_whole: 0 } as const;
    await ledger.db.updateTable("charge_sums_progress").set(start).execute();
    expect(await sums()).toEqual(before);
    expect(await foldCharges(ledger, 3_000)).toBe(true);
    expect(await sums()).toEqual(before);
    while (await foldCharges(ledger, 10_000));
    expect(await sums()).toEqual(before);
    expect(await foldCharges(ledger)).toBe(false);
  });

  it("are read by Today, Routes and the totals, without a row for each channel", async () => {
    const ledger = await join("one");
    await fill(ledger);
    while (await foldCharges(ledger, 10_000));
    for (const [name, run] of Object.entries(reads)) {
      await inSnapshot(ledger, async ({ db }) => {
        const queries: CompiledQuery[] = [];
        const before = await countRows(db, engine);
        expect([name, await run({ ...ledger, db: recording(db, queries) })]).toEqual([
          name,
          charged,
        ]);
        expect((await countRows(db, engine)) - before).toBeLessThan(1_000);
        if (engine === "sqlite") expect(await findScans(db, queries)).toEqual([]);
      });
    }
  });
});

/** Rows and index entries of channels that this transaction has read so far; 0 on SQLite. */
async function countRows(db: Kysely<LedgerSchema>, engine: string): Promise<number> {
  if (engine === "sqlite") return 0;
  const { rows } = await sql<{ read: string }>`
    select sum(seq_tup_read + idx_tup_fetch + (
      select sum(pg_stat_get_xact_tuples_returned(indexrelid)) from pg_index where indrelid = relid
    )) as read from pg_stat_xact_user_tables where relname like 'ch%'
  `.execute(db);
  return Number(rows[0]?.read);
}

function recording(db: Kysely<LedgerSchema>, queries: CompiledQuery[]): Kysely<LedgerSchema> {
  return db.withPlugin({
    transformQuery({ node, queryId }) {
      queries.push(db.getExecutor().compileQuery(node, queryId));
      return node;
    },
    transformResult: async ({ result }) => result,
  });
}

/** Steps of the queries' plans that read rows of channels. */
async function findScans(
  db: Kysely<LedgerSchema>,
  queries: readonly CompiledQuery[],
): Promise<string[]> {
  const plans: string[] = [];
  for (const { sql: text, parameters } of queries) {
    const explain = CompiledQuery.raw(`explain query plan ${text}`, [...parameters]);
    const { rows } = await db.executeQuery<{ detail: string }>(explain);
    plans.push(...rows.map(({ detail }) => detail));
  }
  expect(plans.join("\n")).toContain("charge_sums");
  // The first day with a charge is one entry of an index.
  return plans.filter((step) =>
    /SCAN channel_(sums|terms)|channel_(sums|terms) USING INDEX/.test(step),
  );
}
