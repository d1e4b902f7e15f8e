import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { migrate } from "./migrate.ts";
import { engines, openForTest } from "./testing/engines.ts";
import { type AmountSchema, amountMigrations } from "./testing/schema.ts";

const largest = 2n ** 256n - 1n;
const value = fc.record({
  amount: fc.oneof(
    fc.bigInt({ min: 0n, max: largest }),
    // The ends of PostgreSQL's groups of four digits.
    fc.tuple(fc.nat({ max: 77 }), fc.bigInt({ min: -1n, max: 1n })).map(([digits, by]) => {
      const near = 10n ** BigInt(digits) + by;
      return near > largest ? largest : near;
    }),
  ),
  at_ms: fc.option(
    fc.oneof(
      fc.maxSafeInteger(),
      fc
        .tuple(fc.constantFrom(-1, 1), fc.nat({ max: 52 }), fc.constantFrom(-1, 0, 1))
        .map(([sign, bits, by]) => sign * 2 ** bits + by),
    ),
    { nil: null },
  ),
  // PostgreSQL stores no NUL in a text in any encoding.
  note: fc.option(
    fc.string({ unit: "binary" }).map((text) => text.replaceAll("\u0000", "")),
    { nil: null },
  ),
  data: fc.option(fc.uint8Array({ maxLength: 300 }), { nil: null }),
});

describe.each(engines)("insertMany on $engine", ({ createUrl }) => {
  it("writes any value unchanged, among few rows and among many", async () => {
    const database = await openForTest<AmountSchema>({ url: await createUrl() });
    await migrate(database, { name: "amounts", migrations: amountMigrations });
    const { kysely, transaction, dialect } = database;
    await fc.assert(
      fc.asyncProperty(
        fc.array(value, { minLength: 1, maxLength: 40 }),
        fc.constantFrom(1, 200),
        async (values, least) => {
          const times = Math.ceil(least / values.length);
          const rows = Array.from({ length: times }, () => values)
            .flat()
            .map((row, id) => ({ ...row, id, amount: dialect.amount.encode(row.amount) }));
          await kysely.deleteFrom("amounts").execute();
          await transaction((tx) => dialect.insertMany(tx, "amounts", rows));
          const stored = await kysely.selectFrom("amounts").selectAll().orderBy("id").execute();
          expect(
            stored.map((row) => ({ ...row, data: row.data && Uint8Array.from(row.data) })),
          ).toEqual(rows.map((row) => ({ ...row, data: row.data && Uint8Array.from(row.data) })));
        },
      ),
      { numRuns: 60 },
    );
  });
});
