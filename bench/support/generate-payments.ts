import { type Database, openDatabase } from "@coinslot/storage";
import { type Expression, sql } from "kysely";

type AnyDatabase = Database<Record<string, never>>;
type Engine = AnyDatabase["engine"];

const rowsAtOnce = 250_000;
const payers = 1_000;
const perTransaction = 4;
/** Calldata of one payment in a batch, and the rest of a transaction. */
const signedBytes = perTransaction * 420 + 130;
const network = "eip155:9745";

/**
 * Fills an empty ledger with payments that were settled, final and delivered before `until`. There
 * is one every `everyMs`, and four in each transaction. The database's own means take minutes
 * instead of hours.
 */
export async function generatePayments(
  url: string,
  { rows, until, everyMs }: { rows: number; until: number; everyMs: number },
): Promise<void> {
  const database: AnyDatabase = await openDatabase({
    url,
    durable: false,
    poolSize: 1,
    cacheMebibytes: 256,
    statementTimeoutMs: 600_000,
  });
  try {
    if (database.engine === "sqlite") await sql`pragma synchronous = off`.execute(database.kysely);
    const first = until - rows * everyMs;
    for (let from = 0; from < rows; from += rowsAtOnce) {
      const next = Math.min(rows, from + rowsAtOnce);
      await insertPayments(database, { from, next, first, everyMs });
    }
    if (database.engine === "postgres") await sql`vacuum analyze`.execute(database.kysely);
  } finally {
    await database.close();
  }
}

async function insertPayments(
  { kysely, engine }: AnyDatabase,
  { from, next, first, everyMs }: { from: number; next: number; first: number; everyMs: number },
): Promise<void> {
  const n = sql`n`;
  const batch = sql`(n / ${sql.lit(perTransaction)})`;
  const { numbers, hex, amount, timeHex, raw } = valuesOf(engine);
  const at = sql`(${sql.lit(first)} + n * ${sql.lit(everyMs)})`;
  const batchAt = sql`(${sql.lit(first)} + ${batch} * ${sql.lit(perTransaction * everyMs)})`;
  const id = sql`(${timeHex(at)} || ${hex("id", n, 32)})`;
  const transactionId = sql`(${timeHex(batchAt)} || ${hex("transaction", batch, 32)})`;
  const address = (text: string, value: Expression<unknown>) =>
    sql`('0x' || ${hex(text, value, 40)})`;
  const hash = (text: string, value: Expression<unknown>) => sql`('0x' || ${hex(text, value, 64)})`;
  const ofNumbers = numbers({ from, next });
  const ofBatches = numbers({ from: from / perTransaction, next: next / perTransaction });
  await sql`
    insert into payments (id, network, asset, payer, nonce, value, valid_before, state, fingerprint,
      unused_at_block, transaction_id, carried, runs, is_alone, block_number, block_hash,
      transaction_hash, created_at, queued_at, submitted_at, confirmed_at, final_at, delivered_at,
      scheme, wire, route_id, resource_id, pay_to_id, gas_share)
    with recursive ${ofNumbers}
    select ${id}, ${sql.lit(network)}, ${address("asset", sql`0`)},
      ${address("payer", sql`(n * 7919 % ${sql.lit(payers)})`)}, ${hash("nonce", n)}, ${amount(10_000n)},
      ${amount(1_700_000_300n)}, 'confirmed', ${hex("request", n, 64)}, ${batch} + 20000000,
      ${transactionId}, 1, 1, 0, ${batch} + 20000001, ${hash("block", batch)},
      ${hash("signed", batch)}, ${at}, ${at} + 5, ${at} + 50, ${at} + 1000, ${at} + 60000, ${at} + 1005,
      'eip3009', 'x402v2', 1, 2 + n % 50, 1 + n % 2, 49598
    from numbers`.execute(kysely);
  await sql`
    insert into orders (payment_id, pay_to, valid_after, signature)
    with recursive ${ofNumbers}
    select ${id}, ${address("seller", sql`0`)}, ${amount(0n)},
      '0x' || ${hex("r", n, 64)} || ${hex("s", n, 64)} || '1b'
    from numbers`.execute(kysely);
  await sql`
    insert into transactions (id, network, relayer, nonce, state, epoch, gas_limit, created_at, hash,
      block_number, block_hash, gas_used)
    with recursive ${ofBatches}
    select ${transactionIdOf(engine, { first, everyMs })}, ${sql.lit(network)}, ${address("relayer", sql`0`)}, n, 'final', 1,
      500000, ${sql.lit(first)} + n * ${sql.lit(perTransaction * everyMs)}, ${hash("signed", n)}, n + 20000001,
      ${hash("block", n)}, 198392
    from numbers`.execute(kysely);
  await sql`
    insert into broadcasts (hash, transaction_id, raw, content, max_fee_per_gas,
      max_priority_fee_per_gas, created_at)
    with recursive ${ofBatches}
    select ${hash("signed", n)}, ${transactionIdOf(engine, { first, everyMs })}, ${raw(signedBytes)}, 'payments',
      ${amount(1_000_000_000n)}, ${amount(1n)}, ${sql.lit(first)} + n * ${sql.lit(perTransaction * everyMs)}
    from numbers`.execute(kysely);
}

function transactionIdOf(engine: Engine, { first, everyMs }: { first: number; everyMs: number }) {
  const { timeHex, hex } = valuesOf(engine);
  const at = sql`(${sql.lit(first)} + n * ${sql.lit(perTransaction * everyMs)})`;
  return sql`(${timeHex(at)} || ${hex("transaction", sql`n`, 32)})`;
}

/** Texts that look random, of a name and a number, in each engine's means. */
function valuesOf(engine: Engine) {
  type Value = Expression<unknown>;
  type Range = { from: number; next: number };
  return engine === "sqlite"
    ? {
        numbers: ({ from, next }: Range) =>
          sql`numbers(n) as (select ${sql.lit(from)} union all select n + 1 from numbers where n < ${sql.lit(next - 1)})`,
        timeHex: (at: Value) => sql`printf('%012x', ${at})`,
        // Knuth's multiplicative hash, in pieces of eight digits.
        hex: (name: string, value: Value, digits: number) =>
          sql`substr(${sql.join(
            Array.from(
              { length: Math.ceil(digits / 8) },
              (_, piece) =>
                sql`printf('%08x', (((${value}) + ${sql.lit(seedOf(name) + piece * 7919)}) * 2654435761) & 4294967295)`,
            ),
            sql` || `,
          )}, 1, ${sql.lit(digits)})`,
        amount: (value: bigint) => {
          const digits = value.toString();
          return sql.lit(`${digits.length.toString().padStart(2, "0")}:${digits}`);
        },
        raw: (bytes: number) => sql`'0x' || hex(randomblob(${sql.lit(bytes)}))`,
      }
    : {
        numbers: ({ from, next }: Range) =>
          sql`numbers(n) as (select generate_series(${sql.lit(from)}::bigint, ${sql.lit(next - 1)}::bigint))`,
        timeHex: (at: Value) => sql`lpad(to_hex(${at}), 12, '0')`,
        hex: (name: string, value: Value, digits: number) =>
          sql`substr(encode(sha256(int8send(((${value}) + ${sql.lit(seedOf(name))})::bigint)), 'hex'), 1, ${sql.lit(digits)})`,
        amount: (value: bigint) => sql.lit(Number(value)),
        raw: (bytes: number) =>
          sql`(select '0x' || string_agg(encode(sha256(int8send((numbers.n * 1000 + piece)::bigint)), 'hex'), '')
            from generate_series(1, ${sql.lit(Math.ceil(bytes / 32))}) piece)`,
      };
}

function seedOf(name: string): number {
  return [...name].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7) % 1_000_000_007;
}
