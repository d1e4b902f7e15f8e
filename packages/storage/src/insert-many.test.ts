import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { migrate } from "./migrate.ts";
import { createPostgresUrl, engines, openForTest } from "./testing/engines.ts";
import { type AmountSchema, amountMigrations } from "./testing/schema.ts";

const amounts = [0n, 1n, 9_999n, 10_000n, 10n ** 8n, 10n ** 9n + 7n, 2n ** 64n, 2n ** 256n - 1n];

async function openAmounts(url: string) {
  const database = await openForTest<AmountSchema>({ url });
  await migrate(database, { name: "amounts", migrations: amountMigrations });
  return database;
}

describe.each(engines)("insertMany on $engine", ({ createUrl }) => {
  // Few rows and many use different PostgreSQL commands.
  it.each([1, 100])("writes every type of value unchanged, %i times", async (times) => {
    const { kysely, dialect } = await openAmounts(await createUrl());
    const rows = Array.from({ length: times }, () => [
      {
        note: `"quotes", {braces}, back\\slash, 'single', \t tab, \n line, NULL, ünï 🪙`,
        at_ms: 0,
      },
      { note: "", at_ms: 1_800_000_000_123 },
      { note: null, at_ms: null },
      { note: "NULL", at_ms: Number.MAX_SAFE_INTEGER },
      { note: "-", at_ms: -1 },
      { note: "--", at_ms: Number.MIN_SAFE_INTEGER },
      { note: "---", at_ms: -(2 ** 32) },
      { note: "\u0000".slice(1), at_ms: 2 ** 31 },
    ])
      .flat()
      .map((row, id) => ({
        ...row,
        id,
        amount: dialect.amount.encode(amounts[id % amounts.length] ?? 0n),
        data: id % 2 === 0 ? Uint8Array.from({ length: 256 }, (_, byte) => byte) : null,
      }));
    expect(await dialect.insertMany(kysely, "amounts", rows)).toBe(rows.length);

    const stored = await kysely.selectFrom("amounts").selectAll().orderBy("id").execute();
    expect(stored.map((row) => ({ ...row, data: row.data && Uint8Array.from(row.data) }))).toEqual(
      rows,
    );
  });

  it("writes more rows than fit into one statement", async () => {
    const { kysely, transaction, dialect } = await openAmounts(await createUrl());
    const rows = Array.from({ length: 4_321 }, (_, id) => ({
      id,
      amount: dialect.amount.encode(1n),
    }));
    expect(await transaction((tx) => dialect.insertMany(tx, "amounts", rows))).toBe(rows.length);
    const { total } = await kysely
      .selectFrom("amounts")
      .select(({ ref }) => dialect.amount.sum(ref("amount")).as("total"))
      .executeTakeFirstOrThrow();
    expect(dialect.amount.decode(total)).toBe(BigInt(rows.length));
  });

  it("writes nothing for no rows", async () => {
    const { kysely, dialect } = await openAmounts(await createUrl());
    expect(await dialect.insertMany(kysely, "amounts", [])).toBe(0);
  });

  it("skips, overwrites or refuses rows with an existing key", async () => {
    const { kysely, dialect } = await openAmounts(await createUrl());
    const row = (id: number, note: string) => ({ id, note, amount: dialect.amount.encode(1n) });
    await dialect.insertMany(kysely, "amounts", [row(1, "first")]);

    await expect(dialect.insertMany(kysely, "amounts", [row(1, "again")])).rejects.toMatchObject({
      kind: "unique-violation",
    });
    const rows = [row(1, "second"), row(2, "second")];
    expect(await dialect.insertMany(kysely, "amounts", rows, "ignore")).toBe(1);
    const notes = () => kysely.selectFrom("amounts").select("note").orderBy("id").execute();
    expect(await notes()).toEqual([{ note: "first" }, { note: "second" }]);

    const changed = [row(1, "third"), row(3, "third")];
    await dialect.insertMany(kysely, "amounts", changed, { keys: ["id"], replace: ["note"] });
    expect(await notes()).toEqual([{ note: "third" }, { note: "second" }, { note: "third" }]);
  });

  it("adds amounts to rows with an existing key, modulo 2^256", async () => {
    const { kysely, dialect } = await openAmounts(await createUrl());
    const row = (id: number, amount: bigint) => ({ id, amount: dialect.amount.encode(amount) });
    const add = (...rows: ReturnType<typeof row>[]) =>
      dialect.insertMany(kysely, "amounts", rows, { keys: ["id"], add: ["amount"] });
    const stored = async () => {
      const rows = await kysely.selectFrom("amounts").select("amount").orderBy("id").execute();
      return rows.map(({ amount }) => dialect.amount.decode(amount));
    };
    await add(row(1, 5n), row(2, 2n ** 256n - 3n));
    expect(await add(row(1, 7n), row(2, 2n), row(3, 1n))).toBe(3);
    expect(await stored()).toEqual([12n, 2n ** 256n - 1n, 1n]);
    await add(row(1, 2n ** 256n - 1n), row(2, 1n), row(3, 2n ** 256n - 2n));
    expect(await stored()).toEqual([11n, 0n, 2n ** 256n - 1n]);
  });

  it("rolls back all rows if one cannot be written, and keeps working", async () => {
    const { kysely, transaction, dialect } = await openAmounts(await createUrl());
    const rows = Array.from({ length: 1_000 }, (_, id) => ({
      id: id % 999,
      amount: dialect.amount.encode(1n),
    }));
    const writing = transaction((tx) => dialect.insertMany(tx, "amounts", rows));
    await expect(writing).rejects.toMatchObject({ kind: "unique-violation" });
    expect(await kysely.selectFrom("amounts").selectAll().execute()).toEqual([]);
    expect(await dialect.insertMany(kysely, "amounts", rows.slice(0, 500))).toBe(500);
  });
});

describe("insertMany on postgres", () => {
  it("refuses values after a column's type has changed", async () => {
    const { kysely, dialect } = await openAmounts(await createPostgresUrl());
    const rowsFrom = (first: number, count: number) =>
      Array.from({ length: count }, (_, index) => ({
        id: first + index,
        amount: dialect.amount.encode(7n),
        at_ms: first + index,
      }));
    await dialect.insertMany(kysely, "amounts", rowsFrom(0, 3));
    await sql`alter table amounts alter column at_ms type numeric`.execute(kysely);
    await dialect.insertMany(kysely, "amounts", rowsFrom(3, 3));
    // The bytes of a bigint would be read as the numeric 0.
    await expect(dialect.insertMany(kysely, "amounts", rowsFrom(6, 300))).rejects.toThrow(
      "Not a numeric for at_ms: 6",
    );
    const { rows } = await sql`select id::text, at_ms::text from amounts order by id`.execute(
      kysely,
    );
    expect(rows).toEqual(["0", "1", "2", "3", "4", "5"].map((id) => ({ id, at_ms: id })));
  });

  it("reads the column types again after a refusal", async () => {
    const { kysely, dialect } = await openAmounts(await createPostgresUrl());
    const row = (id: number) => ({ id, amount: dialect.amount.encode(7n), note: "0a" });
    await dialect.insertMany(kysely, "amounts", [row(1)]);
    await sql`alter table amounts alter column note type bytea using note::bytea`.execute(kysely);
    const insert = () => dialect.insertMany(kysely, "amounts", [row(2)]);
    await expect(insert()).rejects.toMatchObject({ kind: "statement" });
    expect(await insert()).toBe(1);
  });

  it("writes no row if the connection is lost among them, and keeps working", async () => {
    const { kysely, transaction, dialect } = await openAmounts(await createPostgresUrl());
    await sql`
      create function hang_up() returns trigger language plpgsql as $$
      begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$
    `.execute(kysely);
    await sql`
      create trigger hang_up before insert on amounts for each row when (new.id = 700)
      execute function hang_up()
    `.execute(kysely);
    const rows = Array.from({ length: 1_000 }, (_, id) => ({
      id,
      amount: dialect.amount.encode(1n),
    }));
    const writing = transaction((tx) => dialect.insertMany(tx, "amounts", rows));
    await expect(writing).rejects.toMatchObject({ kind: "unreachable" });
    await expect(dialect.insertMany(kysely, "amounts", rows)).rejects.toMatchObject({
      kind: "connection-lost",
    });
    await sql`drop trigger hang_up on amounts`.execute(kysely);
    expect(await kysely.selectFrom("amounts").selectAll().execute()).toEqual([]);
    expect(await transaction((tx) => dialect.insertMany(tx, "amounts", rows))).toBe(1_000);
  });
});
