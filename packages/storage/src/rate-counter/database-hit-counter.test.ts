import { sql } from "kysely";
import { expect, it } from "vitest";
import { migrate } from "../migrate.ts";
import { engines, openForTest } from "../testing/engines.ts";
import { createDatabaseHitCounter, hitsMigration } from "./database-hit-counter.ts";

const postgres = engines.filter(({ engine }) => engine === "postgres");
const windowMs = 60_000;

it.each(postgres)(
  "a window of a future that the database's clock was put back from is over",
  async ({ createUrl }) => {
    const database = await openForTest<Record<string, never>>({ url: await createUrl() });
    await migrate(database, { name: "hits", migrations: [hitsMigration("hits")] });
    const onBackgroundError = (error: unknown) => {
      throw error;
    };
    const now = () => 0;
    const counter = createDatabaseHitCounter({ database, table: "hits", onBackgroundError, now });
    await counter.hit("shop", windowMs);
    expect(await counter.hit("shop", windowMs)).toMatchObject({ count: 2 });
    await sql`update hits set resets_at_ms = resets_at_ms + 3600000`.execute(database.kysely);
    const { count, resetsInMs } = await counter.hit("shop", windowMs);
    expect(count).toBe(1);
    expect(resetsInMs).toBeLessThanOrEqual(windowMs);
    expect(await counter.hit("shop", windowMs)).toMatchObject({ count: 2 });
  },
);
