import { type RawBuilder, sql } from "kysely";
import { afterEach, beforeEach } from "vitest";
import { createLedger, type LedgerOptions } from "../ledger/create-ledger.ts";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { sendHeartbeat } from "../ledger/maintenance/processes.ts";
import { type LedgerDatabase, openLedger } from "../ledger/open-ledger.ts";
import { copyMigratedLedger } from "./migrated-ledger.ts";
import type { Engine, TestLedger } from "./settling-devnet.ts";

/** One ledger that several processes share. */
export interface SharedLedger {
  /**
   * The ledger as a process has it whose heart has just beaten. By default, that process has run
   * for a lease: it knows which others live.
   */
  join(processId: string, options?: { isNew?: boolean }): Promise<LedgerContext>;
  /**
   * Makes a process silent for this long, on the database's clock: by default, longer than its
   * lease.
   */
  silence(processId: string, ms?: number): Promise<void>;
  /** Makes what was written on the database's clock older. */
  age(
    table: "channel_deposits" | "code_gas" | "code_payers" | "payments",
    column: "spent_at" | "refused_until" | "confirmed_at",
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
    place = await copyMigratedLedger(engine);
    opened = await openLedger({ url: place.url, processId: "first" });
    now = 1_000_000;
    joined = [];
  });

  afterEach(async () => {
    await opened.close();
    await place.drop();
  });

  return {
    async join(processId, { isNew = false } = {}) {
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
      if (!isNew) ledger.heartbeat.unsureSince = Number.NEGATIVE_INFINITY;
      joined.push(ledger);
      return ledger;
    },
    async silence(processId, ms = 60_000) {
      await sql`update processes set heartbeat_at = heartbeat_at - cast(${ms} as bigint) where id = ${processId}`.execute(
        opened.database.kysely,
      );
      for (const { heartbeat, processId: id } of joined) {
        if (id !== processId) continue;
        heartbeat.sentAt -= ms;
        if (heartbeat.writtenAt !== undefined) heartbeat.writtenAt -= ms;
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
