import { systemClock } from "@coinslot/chain";
import { migrate, openDatabase } from "@coinslot/storage";
import { describe, expect, it, onTestFinished } from "vitest";
import { silentLogger } from "../logger.ts";
import { engines } from "../testing/engines.ts";
import { holdLease } from "./hold-lease.ts";
import { indexerMigrations } from "./migrations/indexer-migrations.ts";
import type { IndexerSchema } from "./schema.ts";

const leaseMs = 300;

describe.each(engines)("the writer of an indexer on $engine", ({ createUrl }) => {
  it("commits a write that outlasts its lease, without beginning it again", async () => {
    const url = await createUrl();
    const database = await openDatabase<IndexerSchema>({ url });
    onTestFinished(() => database.close());
    await migrate(database, indexerMigrations);
    const closing = new AbortController();
    const written = { begun: 0, committed: 0 };
    const holding = holdLease(
      {
        database,
        url,
        owner: "here",
        leaseMs,
        clock: systemClock,
        logger: silentLogger,
        signal: closing.signal,
        onRole: () => undefined,
      },
      async (lease, signal) => {
        await lease.write(async (transaction) => {
          written.begun += 1;
          const endsAt = performance.now() + 4 * leaseMs;
          // As the sums of a repair do: page by page, and not for a turn that is over.
          while (performance.now() < endsAt) {
            signal.throwIfAborted();
            await transaction.selectFrom("indexer_chains").select("chain_id").execute();
          }
        });
        written.committed += 1;
        closing.abort(new Error("over"));
      },
    );
    await holding;
    expect(written).toEqual({ begun: 1, committed: 1 });
  }, 20_000);
});
