import { systemClock } from "@coinslot/chain";
import { createLeases, type Lease } from "@coinslot/storage";
import { sql } from "kysely";
import { describe, expect, it, onTestFinished } from "vitest";
import { openLedger } from "../../ledger/open-ledger.ts";
import { silentLogger } from "../../logger.ts";
import { copyMigratedLedger } from "../../testing/migrated-ledger.ts";
import { keepLease } from "./lease-keeper.ts";

describe.each(["sqlite", "postgres"] as const)("a kept lease on %s", (engine) => {
  it("is given up when it expires during a hanging renewal, and taken again later", async () => {
    const place = await copyMigratedLedger(engine);
    onTestFinished(place.drop);
    const { database, close } = await openLedger({ url: place.url, processId: "here" });
    onTestFinished(close);
    const seen: (Lease | undefined)[] = [];
    const keeper = keepLease({
      leases: createLeases({ database }),
      name: "relayer",
      owner: "here",
      ttlMs: 1_500,
      clock: systemClock,
      logger: silentLogger,
      onChange: (lease) => seen.push(lease),
    });
    onTestFinished(keeper.stop);
    await expect.poll(() => seen).toEqual([expect.objectContaining({ epoch: 1 })]);

    await database.transaction(async (transaction) => {
      // Locks the row, and on SQLite the database: a renewal hangs.
      await sql`update coinslot_leases set owner = owner`.execute(transaction);
      await expect.poll(keeper.current, { timeout: 20_000 }).toBeUndefined();
      expect(seen).toEqual([expect.objectContaining({ epoch: 1 }), undefined]);
    });
    await expect.poll(keeper.current, { timeout: 20_000 }).toMatchObject({ owner: "here" });
    expect(keeper.current()?.epoch).toBeGreaterThan(1);
  });
});
