import { type Devnet, withDatabase } from "@coinslot/devnet";
import { withoutIndexes } from "../../support/without-indexes.ts";

const dayMs = 86_400_000;
/** Days over which the payments are spread, up to now. */
export const daysOfHistory = 60;
/** Those after which retention has archived them. */
const daysKept = 30;
/** Payments of one statement. */
const rowsAtOnce = 500_000;

export const rareNetwork = "eip155:988";

/**
 * Fills a ledger with ended payments of 20,000 payers and ten routes, and 50 submitted ones. Each
 * hundredth has failed, each hundredth was released, each thousandth is on another network. The
 * older half is archived.
 */
export async function fillLedger(url: string, devnet: Devnet, rows: number): Promise<void> {
  const archived = Math.floor((rows * (daysOfHistory - daysKept)) / daysOfHistory);
  await withoutIndexes(url, ["payments", "archived_payments"], async () => {
    for (let from = 0; from < rows; from += rowsAtOnce) {
      const next = Math.min(rows, from + rowsAtOnce);
      await insertPayments(url, devnet, { rows, archived, from, next });
    }
  });
  await sumPayments(url);
}

async function insertPayments(
  url: string,
  devnet: Devnet,
  { rows, archived, from, next }: { rows: number; archived: number; from: number; next: number },
): Promise<void> {
  await withDatabase(url, async ({ engine, execute }) => {
    const isSqlite = engine === "sqlite";
    const start = Date.now() - daysOfHistory * dayMs;
    const stepMs = (daysOfHistory * dayMs) / rows;
    const hex = (number: string, digits: number) =>
      isSqlite ? `printf('%0${digits}x', ${number})` : `lpad(to_hex(${number}), ${digits}, '0')`;
    const bytes = (digits: string) => (isSqlite ? `unhex(${digits})` : `decode(${digits}, 'hex')`);
    const text = (digits: string) => `'0x' || ${digits}`;
    const random = isSqlite ? "lower(hex(randomblob(16)))" : "md5(random()::text)";
    const amount = (digits: string) =>
      isSqlite ? `'${String(digits.length).padStart(2, "0")}:${digits}'` : digits;
    const time = `cast(${start} + n * ${stepMs} as bigint)`;
    const isOpen = `n > ${rows - 50}`;
    const ended = `case when ${isOpen} then null else ${time} end`;
    const state = `case when ${isOpen} then 'submitted' when n % 100 = 7 then 'failed' when n % 100 = 9 then 'released' else 'confirmed' end`;
    const series = (first: number, last: number) =>
      isSqlite
        ? `(with recursive series(n) as (select ${first} union all select n + 1 from series where n < ${last}) select n from series)`
        : `generate_series(${first}::bigint, ${last}::bigint) as s(n)`;
    /** The columns that both tables have, with hex digits in the form of one of them. */
    const values = (form: (digits: string) => string) => ({
      id: `${hex(time, 12)} || ${random}`,
      network: `case when n % 1000 = 5 then '${rareNetwork}' else '${devnet.network}' end`,
      asset: form(`'${devnet.token.toLowerCase().slice(2)}'`),
      payer: form(hex("n * 7919 % 20000", 40)),
      nonce: form(`${random} || ${random}`),
      value: amount("1000"),
      valid_before: amount("1800000000"),
      state,
      carried: "1",
      runs: "1",
      scheme: "'eip3009'",
      block_number: "n / 100",
      block_hash: form(hex("n / 100", 64)),
      // Different from its first digits on, as hashes are: an index of the archive has these alone.
      transaction_hash: form(`${hex("n / 20", 16)} || '${"0".repeat(48)}'`),
      created_at: time,
      confirmed_at: ended,
      final_at: ended,
      delivered_at: ended,
      closed_at: ended,
      route_id: "1 + n % 10",
    });
    const insert = async (
      table: string,
      columns: Record<string, string>,
      { first, last }: { first: number; last: number },
    ) => {
      if (first > last) return;
      await execute(`
        insert into ${table} (${Object.keys(columns).join(", ")})
        select ${Object.values(columns).join(", ")} from ${series(first, last)}`);
    };
    await execute(isSqlite ? "pragma synchronous = off" : "set synchronous_commit = off");
    await insert("archived_payments", values(bytes), {
      first: from + 1,
      last: Math.min(next, archived),
    });
    const served = {
      ...values(text),
      fingerprint: "'GET /weather'",
      transaction_id: hex("n / 20", 44),
      is_alone: "0",
    };
    await insert("payments", served, { first: Math.max(from, archived) + 1, last: next });
  });
}

/** Sums the payments, as the ledger's own steps would have done in time. */
async function sumPayments(url: string): Promise<void> {
  await withDatabase(url, async ({ engine, execute }) => {
    const isSqlite = engine === "sqlite";
    const amount = (number: string) =>
      isSqlite ? `printf('%02d:%d', length(${number}), ${number})` : number;
    const asset = isSqlite ? "'0x' || lower(hex(asset))" : "'0x' || encode(asset, 'hex')";
    await execute(`
      insert into payment_sums
        (day, network, asset, route_id, state, count, amount, deleted_count, deleted_amount)
      select day, network, asset, route_id, state, sum(served + archived),
        ${amount("sum(served + archived) * 1000")}, sum(archived), ${amount("sum(archived) * 1000")}
      from (
        select created_at / ${dayMs} as day, network, asset, route_id, state,
          count(*) as served, 0 as archived
        from payments where state <> 'submitted' group by 1, 2, 3, 4, 5
        union all
        select created_at / ${dayMs}, network, ${asset}, route_id, state, 0, count(*)
        from archived_payments group by 1, 2, 3, 4, 5
      ) as parts
      group by 1, 2, 3, 4, 5;
      insert into unpaid_payments (state, payment_id)
      select state, id from payments where state in ('failed', 'released')`);
  });
}
