import * as fc from "fast-check";
import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { migrate } from "./migrate.ts";
import { engines, openForTest } from "./testing/engines.ts";
import { type AmountSchema, amountMigrations } from "./testing/schema.ts";

const largest = 2n ** 256n - 1n;
const amount = fc.oneof(
  fc.bigInt({ min: 0n, max: largest }),
  fc.bigInt({ min: 0n, max: 10n ** 12n }),
  fc.constantFrom(0n, 1n, 9n, 10n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n, largest),
);

async function openAmounts(url: string) {
  const database = await openForTest<AmountSchema>({ url });
  await migrate(database, { name: "amounts", migrations: amountMigrations });
  return database;
}

describe.each(engines)("amounts on $engine", ({ createUrl }) => {
  it("come back unchanged, in numeric order, with their exact sum, minimum and maximum", async () => {
    const { kysely, transaction, dialect } = await openAmounts(await createUrl());
    const { encode, decode, sum } = dialect.amount;
    await fc.assert(
      fc.asyncProperty(fc.array(amount, { maxLength: 12 }), async (amounts) => {
        await kysely.deleteFrom("amounts").execute();
        await transaction((tx) =>
          dialect.insertMany(
            tx,
            "amounts",
            amounts.map((value, id) => ({ id, amount: encode(value) })),
          ),
        );
        const rows = await kysely
          .selectFrom("amounts")
          .select("amount")
          .orderBy("amount")
          .execute();
        const sorted = [...amounts].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
        expect(rows.map((row) => decode(row.amount))).toEqual(sorted);

        const totals = await kysely
          .selectFrom("amounts")
          .select(({ fn, ref }) => [
            sum(ref("amount")).as("total"),
            fn.min("amount").as("least"),
            fn.max("amount").as("greatest"),
          ])
          .executeTakeFirstOrThrow();
        expect(decode(totals.total)).toBe(amounts.reduce((total, value) => total + value, 0n));
        expect(totals.least && decode(totals.least)).toBe(sorted.at(0) ?? null);
        expect(totals.greatest && decode(totals.greatest)).toBe(sorted.at(-1) ?? null);
      }),
      { numRuns: 60 },
    );
  });

  it("compare numerically in a condition, and so does their sum", async () => {
    const { kysely, dialect } = await openAmounts(await createUrl());
    const { encode, sum } = dialect.amount;
    await fc.assert(
      fc.asyncProperty(amount, amount, async (held, asked) => {
        await kysely.deleteFrom("amounts").execute();
        await kysely
          .insertInto("amounts")
          .values({ id: 1, amount: encode(held) })
          .execute();
        const enough = await kysely
          .selectFrom("amounts")
          .select("id")
          .where("amount", ">=", encode(asked))
          .execute();
        expect(enough).toHaveLength(held >= asked ? 1 : 0);
        const summed = await kysely
          .selectFrom("amounts")
          .select("id")
          .groupBy("id")
          .having(({ ref }) => sql`${sum(ref("amount"))} <= ${encode(asked)}`)
          .execute();
        expect(summed).toHaveLength(held <= asked ? 1 : 0);
      }),
      { numRuns: 40 },
    );
  });

  it("are refused outside uint256", async () => {
    const { dialect } = await openAmounts(await createUrl());
    for (const value of [-1n, largest + 1n]) {
      expect(() => dialect.amount.encode(value)).toThrow(RangeError);
    }
  });
});
