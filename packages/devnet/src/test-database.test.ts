import pg from "pg";
import { describe, expect, it } from "vitest";
import { createTestDatabase } from "./test-database.ts";

describe("a test database", () => {
  it("is empty, durable and apart from every other", async () => {
    const [first, second] = await Promise.all([createTestDatabase(), createTestDatabase()]);
    const client = new pg.Client(first.url);
    await client.connect();
    await client.query("CREATE TABLE coins (amount NUMERIC(78, 0))");
    expect((await client.query("SHOW fsync")).rows).toEqual([{ fsync: "on" }]);
    expect((await client.query("SHOW synchronous_commit")).rows).toEqual([
      { synchronous_commit: "on" },
    ]);
    await client.end();

    const neighbour = new pg.Client(second.url);
    await neighbour.connect();
    await expect(neighbour.query("SELECT * FROM coins")).rejects.toThrow(
      'relation "coins" does not exist',
    );
    await neighbour.end();
    await first.drop();
    await second.drop();
  });

  it("may be a copy of another one, which stays as it is", async () => {
    const template = await createTestDatabase();
    const made = new pg.Client(template.url);
    await made.connect();
    await made.query("CREATE TABLE coins AS SELECT 7 AS amount");
    await made.end();
    const copies = [template.url, template.url].map((url) => createTestDatabase({ template: url }));
    for (const copy of await Promise.all(copies)) {
      const client = new pg.Client(copy.url);
      await client.connect();
      const taken = await client.query("DELETE FROM coins RETURNING amount");
      expect(taken.rows).toEqual([{ amount: 7 }]);
      await client.end();
      await copy.drop();
    }
    await template.drop();
  });

  it("can be dropped twice, and while a client is connected", async () => {
    const database = await createTestDatabase();
    const client = new pg.Client(database.url);
    const errors: string[] = [];
    client.on("error", (error) => errors.push(error.message));
    await client.connect();
    const ended = new Promise<void>((resolve) => client.once("end", () => resolve()));
    await database.drop();
    await database.drop();
    await ended;
    expect(errors[0]).toContain("terminating connection");
    await expect(new pg.Client(database.url).connect()).rejects.toThrow("does not exist");
  });
});
