import { type Devnet, withDatabase } from "@coinslot/devnet";

const dayMs = 86_400_000;
/** Days over which the payments are spread, up to now. */
export const daysOfHistory = 60;

export const rareNetwork = "eip155:988";

/**
 * Fills a ledger with ended payments of 20,000 payers and ten routes, and 50 submitted ones. Each
 * hundredth has failed, each hundredth was released, each thousandth is on another network.
 */
export async function fillLedger(url: string, devnet: Devnet, rows: number): Promise<void> {
  await withDatabase(url, async ({ engine, execute, read }) => {
    const isSqlite = engine === "sqlite";
    const start = Date.now() - daysOfHistory * dayMs;
    const stepMs = (daysOfHistory * dayMs) / rows;
    const hex = (number: string, digits: number) =>
      isSqlite ? `printf('%0${digits}x', ${number})` : `lpad(to_hex(${number}), ${digits}, '0')`;
    const random = isSqlite ? "lower(hex(randomblob(16)))" : "md5(random()::text)";
    const amount = (digits: string) =>
      isSqlite ? `'${String(digits.length).padStart(2, "0")}:${digits}'` : digits;
    const time = `cast(${start} + n * ${stepMs} as bigint)`;
    const isOpen = `n > ${rows - 50}`;
    const state = `case when ${isOpen} then 'submitted' when n % 100 = 7 then 'failed' when n % 100 = 9 then 'released' else 'confirmed' end`;
    const ended = `case when ${isOpen} then null else ${time} end`;
    const series = isSqlite
      ? `(with recursive series(n) as (select 1 union all select n + 1 from series where n < ${rows}) select n from series)`
      : `generate_series(1::bigint, ${rows}::bigint) as s(n)`;
    await execute(`
      insert into payments (id, network, asset, payer, nonce, value, valid_before, state, fingerprint,
        transaction_id, carried, is_alone, block_number, block_hash, transaction_hash, created_at,
        confirmed_at, final_at, delivered_at, closed_at, route_id)
      select ${hex(time, 12)} || ${random},
        case when n % 1000 = 5 then '${rareNetwork}' else '${devnet.network}' end,
        '${devnet.token.toLowerCase()}', '0x' || ${hex("n * 7919 % 20000", 40)},
        '0x' || ${random} || ${random}, ${amount("1000")}, ${amount("1800000000")}, ${state},
        'GET /weather', ${hex("n / 20", 44)}, 1, 0, n / 100, '0x' || ${hex("n / 100", 64)},
        '0x' || ${hex("n / 20", 64)}, ${time}, ${ended}, ${ended}, ${ended}, ${ended}, 1 + n % 10
      from ${series}`);
    // As the ledger's own steps would have left it, given some minutes.
    const tables = isSqlite
      ? await read("select 1 from sqlite_master where name = 'payment_sums'")
      : await read("select 1 where to_regclass('payment_sums') is not null");
    if (tables.length === 0) return;
    const total = isSqlite
      ? "printf('%02d:%d', length(count(*) * 1000), count(*) * 1000)"
      : "count(*) * 1000";
    await execute(`
      insert into payment_sums (day, network, asset, route_id, state, count, amount, deleted_count, deleted_amount)
      select created_at / ${dayMs}, network, asset, route_id, state, count(*), ${total}, 0, ${amount("0")}
      from payments where state <> 'submitted' group by 1, 2, 3, 4, 5;
      insert into unpaid_payments (state, payment_id)
      select state, id from payments where state in ('failed', 'released')`);
  });
}
