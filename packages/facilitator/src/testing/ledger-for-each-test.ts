import { type RawBuilder, sql } from "kysely";
import { afterEach, beforeEach } from "vitest";
import { createLedger, type LedgerOptions } from "../ledger/create-ledger.ts";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { sendHeartbeat } from "../ledger/maintenance/processes.ts";
import { type LedgerDatabase, openLedger } from "../ledger/open-ledger.ts";
import { createTestLedger, type Engine, type TestLedger } from "./settling-devnet.ts";

/** One ledger that several processes share. */
export interface SharedLedger {
  /** The ledger as a process has it whose heart has just beaten. */
  join(processId: string): Promise<LedgerContext>;
  /** Makes a process silent for longer than its lease, on the database's clock. */
  silence(processId: string): Promise<void>;
  /** Makes what was written on the database's clock older. */
  age(
    table: "code_gas" | "code_payers" | "payments",
    column: "spent_at" | "refused_until" | "confirmed_at" | "submitted_at",
    ms: number,
  ): Promise<void>;
  /** Rows of a query, as the engine returns them; big numbers may be texts. */
  read(query: RawBuilder<unknown>): Promise<unknown[]>;
  /** Puts the clock of every process forward. */
  wait(ms: number): void;
}

/** Makes an empty ledger before each test of a suite, and removes it afterwards. */
export function ledgerForEachTest(
  engine: Engine,
  options: Partial<LedgerOptions> = {},
): SharedLedger {
  let place: TestLedger;
  let opened: LedgerDatabase;
  let now = 1_000_000;
  let joined: LedgerContext[] = [];

  beforeEach(async () => {
    place = await createTestLedger(engine);
    opened = await openLedger({ url: place.url, processId: "first" });
    now = 1_000_000;
    joined = [];
  });

  afterEach(async () => {
    await opened.close();
    await place.drop();
  });

  return {
    async join(processId) {
      const ledger = createLedger({
        database: opened.database,
        processId,
        now: () => now,
        heartbeatLeaseMs: 30_000,
        keepAnswersMs: 60_000,
        releaseLimit: { count: 3, windowMs: 1_000 },
        codePayers: { gasPerMinute: 1_000_000n, refusalMs: 60_000 },
        ...options,
      });
      await sendHeartbeat(ledger);
      joined.push(ledger);
      return ledger;
    },
    async silence(processId) {
      await sql`update processes set heartbeat_at = heartbeat_at - 60000 where id = ${processId}`.execute(
        opened.database.kysely,
      );
      for (const { heartbeat, processId: id } of joined) {
        if (id !== processId) continue;
        heartbeat.sentAt -= 60_000;
        if (heartbeat.writtenAt !== undefined) heartbeat.writtenAt -= 60_000;
      }
    },
    async age(table, column, ms) {
      const [of, at] = [sql.table(table), sql.ref(column)];
      await sql`update ${of} set ${at} = ${at} - cast(${ms} as bigint)`.execute(
        opened.database.kysely,
      );
    },
    async read(query) {
      return (await query.execute(opened.database.kysely)).rows;
    },
    wait(ms) {
      now += ms;
    },
  };
}
