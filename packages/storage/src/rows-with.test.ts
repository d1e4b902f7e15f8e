import { describe, expect, it } from "vitest";
import { engines, openForTest } from "./testing/engines.ts";

interface PairSchema {
  pairs: { id: number; first: string; second: string };
}

describe.each(engines)("rowsWith on $engine", ({ createUrl }) => {
  it("finds the rows of each set of texts, each row once, and at most others with the same first text", async () => {
    const { kysely, dialect } = await openForTest<PairSchema>({ url: await createUrl() });
    const { integer, text } = dialect.types;
    await kysely.schema
      .createTable("pairs")
      .addColumn("id", integer)
      .addColumn("first", text)
      .addColumn("second", text)
      .execute();
    const odd = `"quotes", {braces}, 'single', NULL, ünï 🪙`;
    const texts = ["a", "b", odd];
    const rows = texts.flatMap((first) =>
      texts.flatMap((second) => [0, 1].map(() => ({ first, second }))),
    );
    await dialect.insertMany(
      kysely,
      "pairs",
      rows.map((row, id) => ({ id, ...row })),
    );
    const find = async (sets: readonly { first?: string; second?: string }[]) => {
      const found = await kysely
        .selectFrom(dialect.rowsWith(kysely, "pairs", sets))
        .select(["pairs.first", "pairs.second"])
        .orderBy("id")
        .execute();
      for (const row of found)
        expect(sets.map(({ first = row.first }) => first)).toContain(row.first);
      return found
        .filter((row) =>
          sets.some(
            ({ first = row.first, second }) => first === row.first && second === row.second,
          ),
        )
        .map(({ first, second }) => [first, second]);
    };
    expect(await find([{ first: "a", second: "b" }])).toEqual([
      ["a", "b"],
      ["a", "b"],
    ]);
    expect(
      await find([
        { first: "b", second: odd },
        { first: "a", second: "c" },
        { first: "b", second: odd },
        { first: odd, second: "a" },
      ]),
    ).toEqual([
      ["b", odd],
      ["b", odd],
      [odd, "a"],
      [odd, "a"],
    ]);
    expect(await find([{ second: odd }])).toHaveLength(6);
  });
});
