import { sql, type Transaction } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { asset, network, order, payer, queue, submit, wish } from "../testing/ledger-payments.ts";
import { createTestLedger, type TestLedger } from "../testing/settling-devnet.ts";
import { createLedger } from "./create-ledger.ts";
import type { LedgerContext } from "./ledger-context.ts";
import { type LedgerDatabase, openLedger } from "./open-ledger.ts";
import { readCodeAdmission } from "./payments/admit-code.ts";
import { findCommitted } from "./payments/committed-balance.ts";
import { recordOutcomes } from "./payments/record-outcomes.ts";
import { countQueued, findQueued, readQueued } from "./queries/find-queued.ts";
import { findFailed, findOverdue } from "./queries/find-watched.ts";
import type { LedgerSchema } from "./schema.ts";

// PostgreSQL's plan depends on its statistics of the table, and on their age.
describe("a long history on postgres", () => {
  let place: TestLedger;
  let opened: LedgerDatabase;
  let ledger: LedgerContext;

  beforeEach(async () => {
    place = await createTestLedger("postgres");
    opened = await openLedger({ url: place.url, processId: "one" });
    ledger = createLedger({
      database: opened.database,
      processId: "one",
      now: () => 1_000_000,
      heartbeatLeaseMs: 10_000,
      keepAnswersMs: 60_000,
      releaseLimit: { count: 3, windowMs: 1_000 },
    });
  });

  afterEach(async () => {
    await opened.close();
    await place.drop();
  });

  /** The oldest payments: of each two, one is confirmed and final, the other in the given state. */
  async function addOld(state: "failed" | "queued" | "submitted"): Promise<void> {
    const { kysely: db } = opened.database;
    await sql`
      insert into payments (id, network, asset, payer, nonce, value, valid_before, state, fingerprint,
        carried, is_alone, block_number, created_at, final_at)
      select lpad(n::text, 12, '0'), ${network}, ${asset}, ${payer}, 'old ' || n, 10, 300,
        case n % 2 when 0 then 'confirmed' else ${state} end, 'GET /a', 1, 0, 1, n,
        case n % 2 when 0 then n end
      from generate_series(1, 10000) n
    `.execute(db);
    await sql`
      insert into orders (payment_id, pay_to, valid_after, signature)
      select id, ${order.payTo}, 0, ${order.signature} from payments
    `.execute(db);
    await sql`analyze payments, orders`.execute(db);
  }

  /** None of it is open or watched any more, and the statistics are stale. */
  async function finishOld(): Promise<void> {
    const { kysely: db } = opened.database;
    await sql`
      update payments set state = 'confirmed', block_number = 1, final_at = 1
      where state in ('queued', 'submitted')
    `.execute(db);
    await sql`update payments set closed_at = 1 where state = 'failed'`.execute(db);
  }

  /** The rows that this work's statements read from the tables, used or not. */
  function countRead(work: (db: Transaction<LedgerSchema>) => Promise<unknown>): Promise<number> {
    return opened.database.transaction(async (transaction) => {
      const before = await readSoFar(transaction);
      await work(transaction);
      return (await readSoFar(transaction)) - before;
    });
  }

  async function readSoFar(db: Transaction<LedgerSchema>): Promise<number> {
    const { rows } = await sql<{ read: string }>`
      select sum(seq_tup_read + idx_tup_fetch) as read from pg_stat_xact_user_tables
      where relname in ('payments', 'orders')
    `.execute(db);
    return Number(rows[0]?.read);
  }

  it("is not scanned for watched failed payments", async () => {
    await addOld("failed");
    await finishOld();
    const id = await submit(ledger);
    const reason = "invalid_exact_evm_transaction_failed";
    await recordOutcomes(ledger, [{ failed: [{ ids: [id], reason }] }]);
    const { dialect } = opened.database;
    const read = await countRead(async (db) => {
      const failed = await findFailed({ db, dialect }, { network, limit: 20 });
      expect(failed.map(({ payment }) => payment.id)).toEqual([id]);
    });
    expect(read).toBeLessThan(10);
  });

  it("is not scanned for the queue, even with stale statistics of a long queue", async () => {
    await addOld("queued");
    await finishOld();
    const id = await queue(ledger);
    const { dialect } = opened.database;
    const read = await countRead(async (db) => {
      const queued = await findQueued({ db, dialect }, { network, limit: 20 });
      expect(queued).toEqual([{ id, owner: ledger.processId }]);
    });
    expect(read).toBeLessThan(10);
    const readById = await countRead(async (db) => {
      const queued = await readQueued({ db, dialect }, { network, ids: [id] });
      expect(queued.map(({ payment }) => payment.id)).toEqual([id]);
    });
    expect(readById).toBeLessThan(10);
    expect(
      await countRead((db) => countQueued({ db, dialect }, { network, upTo: 20 })),
    ).toBeLessThan(10);
  });

  it.each([
    ["queued", queue],
    ["submitted", submit],
  ] as const)(
    "is not scanned for overdue payments that are %s, even with stale statistics of many open ones",
    async (state, begin) => {
      await addOld(state);
      await finishOld();
      const id = await begin(ledger);
      const { dialect } = opened.database;
      const read = await countRead(async (db) => {
        const before = 2n ** 256n - 1n;
        const overdue = await findOverdue({ db, dialect }, { network, state, before, limit: 20 });
        expect(overdue.map(({ payment }) => payment.id)).toEqual([id]);
      });
      expect(read).toBeLessThan(10);
    },
  );

  it("is not scanned for a payer's committed balance, even with stale statistics of many open payments", async () => {
    await addOld("submitted");
    await finishOld();
    const id = await queue(ledger);
    const { dialect } = opened.database;
    const read = await countRead(async (db) => {
      const promised = await findCommitted({ db, dialect }, { network, asset, payer, limit: 20 });
      expect(promised.map((payment) => payment.id)).toEqual([id]);
    });
    expect(read).toBeLessThan(10);
  });

  it("is not scanned for the record of a payer with code, on a network where it has none", async () => {
    await addOld("submitted");
    await finishOld();
    const { dialect } = opened.database;
    const { id, ...wished } = wish({ gasAtRisk: 300_000n });
    const request = {
      ...wished,
      id: { ...id, network: "eip155:988" },
      paymentId: "",
      token: "",
    } as const;
    const read = await countRead((transaction) =>
      readCodeAdmission({ transaction, dialect, requests: [request], limits: ledger.codePayers }),
    );
    expect(read).toBeLessThan(10);
  });
});
