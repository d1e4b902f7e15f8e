import { describe, expect, it } from "vitest";
import { migrate } from "./migrate.ts";
import { engines, openForTest } from "./testing/engines.ts";
import { type AmountSchema, amountMigrations } from "./testing/schema.ts";

async function openAmounts(url: string) {
  const database = await openForTest<AmountSchema>({ url });
  await migrate(database, { name: "amounts", migrations: amountMigrations });
  return database;
}

describe.each(engines)("insertMany on $engine", ({ createUrl }) => {
  it("writes every kind of value as it is", async () => {
    const { kysely, dialect } = await openAmounts(await createUrl());
    const rows = [
      {
        note: `"quotes", {braces}, back\\slash, 'single', \t tab, \n line, NULL, ünï 🪙`,
        at_ms: 0,
      },
      { note: "", at_ms: 1_800_000_000_123 },
      { note: null, at_ms: null },
      { note: "NULL", at_ms: Number.MAX_SAFE_INTEGER },
    ].map((row, id) => ({
      ...row,
      id,
      amount: dialect.amount.encode(BigInt(id)),
      data: id % 2 === 0 ? Uint8Array.from({ length: 256 }, (_, byte) => byte) : null,
    }));
    expect(await dialect.insertMany(kysely, "amounts", rows)).toBe(rows.length);

    const stored = await kysely.selectFrom("amounts").selectAll().orderBy("id").execute();
    expect(stored.map((row) => ({ ...row, data: row.data && Uint8Array.from(row.data) }))).toEqual(
      rows,
    );
  });

  it("writes more rows than fit into a statement", async () => {
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

  it("writes nothing of no rows", async () => {
    const { kysely, dialect } = await openAmounts(await createUrl());
    expect(await dialect.insertMany(kysely, "amounts", [])).toBe(0);
  });

  it("skips or overwrites rows whose key is taken, or fails", async () => {
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
});
