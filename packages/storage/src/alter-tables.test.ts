import { type Kysely, sql } from "kysely";
import { describe, expect, it } from "vitest";
import { engines, openForTest } from "./testing/engines.ts";

interface Notes {
  notes: Record<string, string>;
}

describe.each(engines)(
  "a reader of a table that is altered meanwhile, on $engine",
  ({ createUrl }) => {
    /** A program whose statements are prepared, and another that changes the schema. */
    async function start() {
      const url = await createUrl();
      const owner = await openForTest<Notes>({ url });
      await sql`create table notes (first text, second text, third text)`.execute(owner.kysely);
      await owner.kysely
        .insertInto("notes")
        .values({ first: "1", second: "2", third: "3" })
        .execute();
      const reader = await openForTest<Notes>({ url });
      expect(await readEverywhere(reader)).toEqual({ first: "1", second: "2", third: "3" });
      return { owner, reader };
    }

    /** All ways to select every column; they must agree. */
    async function readEverywhere({
      kysely,
      transaction,
    }: Awaited<ReturnType<typeof openForTest<Notes>>>) {
      const selectAll = (db: Kysely<Notes>) => db.selectFrom("notes").selectAll().execute();
      const ways = [
        await selectAll(kysely),
        await transaction(selectAll),
        await kysely.selectFrom("notes").selectAll("notes").execute(),
        (await sql<Record<string, string>>`select notes.* from notes`.execute(kysely)).rows,
        await kysely.updateTable("notes").set({ first: "1" }).returningAll().execute(),
      ];
      for (const rows of ways) expect(rows).toEqual(ways[0]);
      return { ...ways[0]?.[0] };
    }

    it("reads an added column", async () => {
      const { owner, reader } = await start();
      await sql`alter table notes add column fourth text not null default '4'`.execute(
        owner.kysely,
      );
      const altered = { first: "1", second: "2", third: "3", fourth: "4" };
      expect(await readEverywhere(reader)).toEqual(altered);
      expect(await readEverywhere(owner)).toEqual(altered);
    });

    it("reads a renamed column under its new name", async () => {
      const { owner, reader } = await start();
      await sql`alter table notes rename column third to last`.execute(owner.kysely);
      expect(await readEverywhere(reader)).toEqual({ first: "1", second: "2", last: "3" });
      expect(await readEverywhere(owner)).toEqual({ first: "1", second: "2", last: "3" });
    });

    it("reads no value under the name of a dropped column", async () => {
      const { owner, reader } = await start();
      await sql`alter table notes drop column second`.execute(owner.kysely);
      expect(await readEverywhere(reader)).toEqual({ first: "1", third: "3" });
      expect(await readEverywhere(owner)).toEqual({ first: "1", third: "3" });
    });

    it("is refused a statement that names a dropped column", async () => {
      const { owner, reader } = await start();
      const named = reader.kysely.selectFrom("notes").select("second");
      expect(await named.execute()).toEqual([{ second: "2" }]);
      await sql`alter table notes drop column second`.execute(owner.kysely);
      await expect(named.execute()).rejects.toThrow("second");
    });
  },
);
