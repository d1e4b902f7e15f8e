import { setTimeout as pause } from "node:timers/promises";
import { prepareOutage } from "@coinslot/devnet";
import { effort } from "@coinslot/devnet/effort";
import { sql } from "kysely";
import { describe, expect, it, onTestFinished } from "vitest";
import { engines } from "../testing/engines.ts";
import { expectExact } from "../testing/oracle.ts";
import { startIndexer, startUsedChain, stepRandomly, usdtOf } from "../testing/scene.ts";
import { randomOf } from "../testing/seeded-random.ts";

const [sqlite, postgres] = engines;

describe("a database failure in the middle of a batch", () => {
  it("is survived on PostgreSQL with cut connections and refused new ones", async () => {
    const random = randomOf("a database that goes away");
    const devnet = await startUsedChain(40);
    const url = await postgres.createUrl();
    const outage = await prepareOutage(url);
    onTestFinished(outage.close);
    const indexer = await startIndexer({
      rpcUrls: [devnet.rpcUrl],
      database: url,
      chain: { maxBlocksPerRequest: 4 },
    });
    for (let round = 0; round < 5 * effort; round++) {
      await stepRandomly(devnet, random);
      await pause(random.between(0, 60));
      await outage.begin();
      await pause(random.between(0, 300));
      if (round === 0)
        expect(await indexer.status()).toMatchObject({
          database: "unhealthy",
          health: "unhealthy",
        });
      await outage.end();
    }
    await expectExact(indexer, devnet, usdtOf(devnet));
  });

  it("is survived on SQLite with refused rows, as on a full disk", async () => {
    const random = randomOf("a database that refuses");
    const devnet = await startUsedChain(40);
    const url = await sqlite.createUrl();
    const indexer = await startIndexer({
      rpcUrls: [devnet.rpcUrl],
      database: url,
      chain: { maxBlocksPerRequest: 4 },
    });
    const { kysely } = await indexer.database();
    for (let round = 0; round < 5 * effort; round++) {
      await sql`
        create trigger full before insert on indexer_balances when random() % 2 = 0
        begin select raise(abort, 'no space left'); end
      `.execute(kysely);
      await stepRandomly(devnet, random);
      await pause(random.between(0, 300));
      await sql`drop trigger full`.execute(kysely);
    }
    await expectExact(indexer, devnet, usdtOf(devnet));
  });
});
