import type { Hex } from "@coinslot/protocol";
import type { Lease } from "@coinslot/storage";
import { CompiledQuery, type Kysely, type KyselyPlugin, sql, type Transaction } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../testing/ledger-for-each-test.ts";
import {
  asset,
  hash,
  inclusion,
  network,
  order,
  relayer,
  submit,
  takeLease,
  wish,
} from "../testing/ledger-payments.ts";
import { createTestLedger, type TestLedger } from "../testing/settling-devnet.ts";
import { createLedger } from "./create-ledger.ts";
import type { LedgerContext } from "./ledger-context.ts";
import { archivePayments } from "./maintenance/archive-payments.ts";
import { closePayments } from "./maintenance/close-payments.ts";
import { forgetPayers } from "./maintenance/forget-payers.ts";
import { releaseAbandoned, sendHeartbeat } from "./maintenance/processes.ts";
import { pruneTransactions } from "./maintenance/prune-transactions.ts";
import { isReservationHeld } from "./maintenance/reservation-held.ts";
import { type LedgerDatabase, openLedger } from "./open-ledger.ts";
import { findCommitted } from "./payments/committed-balance.ts";
import { countRun } from "./payments/count-run.ts";
import { deliverPayment } from "./payments/deliver-payments.ts";
import { enqueuePayment } from "./payments/enqueue-payments.ts";
import { evictAnswers } from "./payments/keep-answers.ts";
import { recordOutcomes } from "./payments/record-outcomes.ts";
import { releasePayment } from "./payments/release-payment.ts";
import { reservePayment } from "./payments/reserve-payments.ts";
import type { ReserveWish } from "./payments/reserve-request.ts";
import { countQueued, findQueued, readQueued } from "./queries/find-queued.ts";
import { findFailed, findOverdue } from "./queries/find-watched.ts";
import { getConcluded, getPayments } from "./queries/list-payments.ts";
import { lookUpPayment } from "./queries/look-up-payments.ts";
import { recallRefunds } from "./refunds/move-refund.ts";
import type { LedgerSchema } from "./schema.ts";
import {
  findHashes,
  findHighestNonce,
  findOpenIds,
  findOpenTransactions,
} from "./transactions/find-transactions.ts";
import { loseTransaction } from "./transactions/settle-transaction.ts";
import { storeReplacement, storeTransaction } from "./transactions/store-transaction.ts";
import { finaliseBlocks, findBlocks, undoBlocks } from "./transactions/undo-blocks.ts";

/** Payments in the ledger, of 20 a transaction, of 4 transactions a block. */
const payments = 200_000;
const now = 100_000_000;
const day = 86_400_000;
/** The last of them, in each state. A transaction has 20 of `submitted` and of `confirmed`. */
const recent = { reserved: 300, queued: 300, submitted: 300, failed: 300, confirmed: 4_000 };
const notConfirmed = recent.reserved + recent.queued + recent.submitted + recent.failed;

type State = keyof typeof recent;

/** The number of the `index`-th last payment of a state. */
function numberOf(state: State, index = 0): number {
  const states: State[] = ["reserved", "queued", "submitted", "failed", "confirmed"];
  const later = states.slice(0, states.indexOf(state)).reduce((sum, each) => sum + recent[each], 0);
  return payments - later - index;
}

const idOf = (number: number) => String(number).padStart(12, "0");
const blockOf = (number: number) => Math.ceil(number / 80);
const payerOf = (number: number): Hex => `0x${(number % 500).toString(16).padStart(40, "0")}`;
const transactionOf = (number: number) => idOf(Math.ceil(number / 20));
const newest = (state: State, count: number) =>
  Array.from({ length: count }, (_, index) => numberOf(state, index));

/** A request for a payment of the ledger, or, above their number, for a new one. */
function wishOf(number: number): ReserveWish {
  return {
    id: { network, asset, payer: payerOf(number), nonce: hash(number) },
    fingerprint: "GET /a",
    value: 10n,
    validBefore: 2n ** 255n,
    payTo: order.payTo,
    keyHash: `key ${number}`,
    balance: { amount: 10n ** 9n, blockNumber: BigInt(blockOf(payments)) },
  };
}

/** Rows and index entries that may be read for each row that is named or returned. */
const perRow = 24;
/** Besides, open payments may be read. */
const openRows = 1_000;

/** The tables that grow. */
const tables = [
  ...["payments", "orders", "transactions", "broadcasts", "answers"],
  "refundable_payments",
];

type Work = (ledger: LedgerContext) => Promise<unknown>;

describe("on postgres without statistics, no history is read", () => {
  let place: TestLedger;
  let opened: LedgerDatabase;
  let lease: Lease;

  beforeAll(async () => {
    place = await createTestLedger("postgres");
    opened = await openLedger({ url: place.url, processId: "one" });
    await opened.database.transaction(fill);
    lease = await takeLease(createContext());
  });

  afterAll(async () => {
    await opened.close();
    await place.drop();
  });

  const held = { token: `token ${numberOf("reserved")}`, payer: payerOf(numberOf("reserved")) };
  const queued = newest("queued", 20);
  const submitted = newest("submitted", 20);
  const confirmed = numberOf("confirmed");
  const block = blockOf(confirmed - 200);
  const reason = "invalid_exact_evm_transaction_failed";
  const step = { after: "", before: now, limit: 50 };
  const undelivered = { undeliveredBefore: now, now };

  const works: [string, number, Work][] = [
    ["a look-up", 1, (ledger) => lookUpPayment(ledger, wishOf(confirmed))],
    ["250 look-ups", 250, (ledger) => all(newest("confirmed", 250), (n) => lookUp(ledger, n))],
    ["a reservation", 1, (ledger) => reservePayment(ledger, wishOf(payments + 1))],
    ["20 reservations", 20, (ledger) => all(above(20), (n) => reserve(ledger, n))],
    ["250 reservations", 250, (ledger) => all(above(250), (n) => reserve(ledger, n))],
    [
      "a reservation beyond the balance",
      1,
      (ledger) => reservePayment(ledger, wishOf(payments + 1), [idOf(numberOf("queued"))]),
    ],
    [
      "20 failed payments brought again",
      20,
      (ledger) => all(newest("failed", 20), (n) => reserve(ledger, n)),
    ],
    [
      "a payer with code",
      1,
      (ledger) => reservePayment(ledger, { ...wishOf(payments + 1), gasAtRisk: 100_000n }),
    ],
    ["20 settlements", 20, (ledger) => all(newest("reserved", 20), (n) => enqueue(ledger, n))],
    ["250 settlements", 250, (ledger) => all(newest("reserved", 250), (n) => enqueue(ledger, n))],
    ["a counted run", 1, (ledger) => countRun(ledger, held.token)],
    [
      "250 deliveries",
      250,
      (ledger) => all(newest("reserved", 250), (n) => deliverPayment(ledger, `token ${n}`)),
    ],
    ["a release", 1, (ledger) => releasePayment(ledger, { ...held, countsAgainstPayer: true })],
    [
      "a reservation that may be lost",
      1,
      (ledger) => isReservationHeld(ledger, { ...wishOf(confirmed), ...held }),
    ],
    [
      "evicted answers",
      20,
      (ledger) =>
        ledger.write((transaction) =>
          evictAnswers({
            transaction,
            answers: newest("confirmed", 20).map((n) => ({
              keyHash: `key ${n}`,
              payer: payerOf(confirmed),
            })),
          }),
        ),
    ],
    ["the queue", 20, (ledger) => findQueued(ledger, { network, limit: 20 })],
    [
      "queued payments by their ids",
      20,
      (ledger) => readQueued(ledger, { network, ids: queued.map(idOf) }),
    ],
    ["the length of the queue", 20, (ledger) => countQueued(ledger, { network, upTo: 20 })],
    ["watched payments", 20, (ledger) => findFailed(ledger, { network, limit: 20 })],
    [
      "the next watched payments",
      20,
      (ledger) =>
        findFailed(ledger, { network, limit: 20, afterId: idOf(numberOf("failed", 100)) }),
    ],
    [
      "overdue payments",
      recent.submitted,
      (ledger) => findOverdue(ledger, { network, state: "submitted", before: 1n, limit: 20 }),
    ],
    [
      "queued payments past their time",
      recent.queued,
      (ledger) => findOverdue(ledger, { network, state: "queued", before: 1n, limit: 20 }),
    ],
    [
      "commitments of a payer",
      20,
      (ledger) => findCommitted(ledger, { network, asset, payer: payerOf(1), limit: 20 }),
    ],
    [
      "payments by their ids",
      250,
      (ledger) => getPayments(ledger, newest("confirmed", 250).map(idOf)),
    ],
    [
      "outcomes for waiters",
      250,
      (ledger) => getConcluded(ledger, newest("confirmed", 250).map(idOf)),
    ],
    ["a transaction to store", 20, (ledger) => storeFor(ledger, queued)],
    [
      "a replacement to store",
      1,
      async (ledger) => {
        await storeFor(ledger, queued.slice(0, 1));
        await storeReplacement(ledger, lease, {
          id: "new",
          broadcast: { ...broadcast, hash: hash(payments + 2) },
        });
      },
    ],
    [
      "open transactions",
      recent.submitted,
      (ledger) => findOpenTransactions(ledger, { network, relayer }),
    ],
    ["their ids", recent.submitted, (ledger) => findOpenIds(ledger, { network, relayer })],
    ["the highest nonce", 1, (ledger) => findHighestNonce(ledger, { network, relayer })],
    ["the hashes of a transaction", 1, (ledger) => findHashes(ledger, transactionOf(confirmed))],
    [
      "a lost transaction",
      20,
      (ledger) => loseTransaction(ledger, transactionOf(submitted[0] ?? 0)),
    ],
    [
      "confirmed payments",
      20,
      (ledger) =>
        recordOutcomes(ledger, [{ confirmed: { ids: submitted.map(idOf), inclusion } }], {
          id: transactionOf(submitted[0] ?? 0),
          inclusion,
          gasUsed: 1n,
        }),
    ],
    [
      "payments that fail",
      20,
      (ledger) =>
        recordOutcomes(ledger, [
          {
            failed: [
              { ids: submitted.map(idOf), reason, transactionId: transactionOf(submitted[0] ?? 0) },
            ],
          },
        ]),
    ],
    [
      "payments that go back to the queue",
      20,
      (ledger) =>
        recordOutcomes(ledger, [
          {
            requeued: { ids: submitted.map(idOf), transactionId: transactionOf(submitted[0] ?? 0) },
          },
        ]),
    ],
    ["watches that end", 20, (ledger) => closePayments(ledger, newest("failed", 20).map(idOf))],
    ["blocks that are not final", recent.confirmed / 80, (ledger) => findBlocks(ledger, network)],
    [
      "a final block",
      84,
      (ledger) =>
        finaliseBlocks(ledger, { network, blocks: [{ number: block, hash: hash(block) }] }),
    ],
    [
      "blocks that have left the chain",
      84,
      (ledger) => undoBlocks(ledger, { network, blocks: [{ number: block, hash: hash(block) }] }),
    ],
    [
      "a step that archives",
      50,
      async (ledger) =>
        expect(await archivePayments(ledger, { ...step, ...undelivered })).toMatchObject({
          ended: 50,
        }),
    ],
    [
      "a step that prunes transactions",
      50,
      async (ledger) => expect(await pruneTransactions(ledger, step)).toMatchObject({ ended: 50 }),
    ],
    [
      "a step that forgets payers",
      100,
      async (ledger) => {
        // The first half has payments.
        const payers = Array.from({ length: 50 }, (_, n) => payerOf(n));
        const others = payers.map((payer): Hex => `0xff${payer.slice(4)}`);
        const unused = { releases: 0, window_started_at: now - 2 * day };
        await ledger.db
          .insertInto("payers")
          .values([...payers, ...others].map((payer) => ({ payer, ...unused })))
          .onConflict((conflict) => conflict.column("payer").doUpdateSet(unused))
          .execute();
        expect(await forgetPayers(ledger, { after: "", limit: 100 })).toBe(others.at(-1));
      },
    ],
    [
      "refunds that wait too long",
      1,
      async (ledger) => {
        const bounds = { latest: now, latestFrom: now + 2 * day, latestDue: now + 32 * day };
        expect(await recallRefunds(ledger, { ...bounds, now })).toBe(0);
      },
    ],
    ["payments of dead processes", recent.reserved + recent.queued, releaseAbandoned],
  ];

  describe.each(["never counted", "counted by an index build"])("a table %s", (counted) => {
    beforeAll(async () => {
      if (counted === "never counted") return;
      for (const table of tables) {
        await sql`reindex table ${sql.table(table)}`.execute(opened.database.kysely);
      }
    });

    it.each(works)("for %s", async (_, rows, work) => {
      expect(await countRead(work)).toBeLessThan(perRow * rows + openRows);
    });
  });

  const broadcast = {
    hash: hash(payments + 1),
    raw: "0x02",
    content: "payments",
    maxFeePerGas: 7n,
    maxPriorityFeePerGas: 1n,
  } as const;

  const all = <Result>(numbers: readonly number[], work: (n: number) => Promise<Result>) =>
    Promise.all(numbers.map(work));
  const above = (count: number) => Array.from({ length: count }, (_, n) => payments + 1 + n);
  const lookUp = (ledger: LedgerContext, number: number) => lookUpPayment(ledger, wishOf(number));
  const reserve = (ledger: LedgerContext, n: number) => reservePayment(ledger, wishOf(n));
  const enqueue = (ledger: LedgerContext, n: number) =>
    enqueuePayment(ledger, {
      token: `token ${n}`,
      payer: payerOf(n),
      order,
      answer: { keyHash: `new key ${n}`, sealed: Uint8Array.of(1) },
    });

  async function storeFor(ledger: LedgerContext, numbers: readonly number[]) {
    const outcome = await storeTransaction(ledger, lease, {
      id: "new",
      network,
      relayer,
      nonce: payments,
      gasLimit: 1n,
      broadcast,
      payments: numbers.map((number) => ({ id: idOf(number), fingerprint: "GET /a" })),
    });
    expect(outcome).toBe("stored");
  }

  const createContext = () =>
    createLedger({
      database: opened.database,
      processId: "one",
      now: () => now,
      heartbeatLeaseMs: 10_000,
      keepAnswersMs: 60_000,
      releaseLimit: { count: 3, windowMs: 1_000 },
    });

  /** The rows and index entries that a work's statements read, used or not. It is undone. */
  async function countRead(work: Work): Promise<number> {
    const undone = new Error("undone");
    let count = Number.NaN;
    const attempt = opened.database.transaction(async (transaction) => {
      const ledger: LedgerContext = {
        ...createContext(),
        db: transaction,
        write: (run) => run(transaction),
      };
      await sendHeartbeat(ledger);
      // Rows that parallel workers read are counted elsewhere: planned, none of them starts.
      await sql`set local max_parallel_workers = 0`.execute(transaction);
      const before = await readSoFar(transaction);
      await work(ledger);
      count = (await readSoFar(transaction)) - before;
      throw undone;
    });
    await attempt.catch((error: unknown) => {
      if (error !== undone) throw error;
    });
    return count;
  }

  async function readSoFar(db: Kysely<LedgerSchema>): Promise<number> {
    const { rows } = await sql<{ read: string }>`
      select sum(seq_tup_read + idx_tup_fetch + (
        select sum(pg_stat_get_xact_tuples_returned(indexrelid)) from pg_index where indrelid = relid
      )) as read from pg_stat_xact_user_tables
      where relname in (${sql.join(tables)})
    `.execute(db);
    return Number(rows[0]?.read);
  }
});

describe("on sqlite without statistics", () => {
  const { join } = ledgerForEachTest("sqlite");

  it("no statement of a payment's way reads a table as a whole", async () => {
    const ledger = await join("one");
    const keyed = wish({ keyHash: "key" });
    const id = await submit(ledger, keyed);
    const queries: CompiledQuery[] = [];
    const record: KyselyPlugin = {
      transformQuery({ node, queryId }) {
        queries.push(ledger.db.getExecutor().compileQuery(node, queryId));
        return node;
      },
      transformResult: async ({ result }) => result,
    };
    const recorded: LedgerContext = {
      ...ledger,
      db: ledger.db.withPlugin(record),
      write: (run) => ledger.write((transaction) => run(transaction.withPlugin(record))),
    };
    await lookUpPayment(recorded, keyed);
    await reservePayment(recorded, wish({ keyHash: "another", gasAtRisk: 1n }));
    await findOpenTransactions(recorded, { network, relayer });
    await recordOutcomes(recorded, [{ confirmed: { ids: [id], inclusion } }]);
    expect(await findBlocks(recorded, network)).toHaveLength(1);
    const blocks = [{ number: inclusion.blockNumber, hash: inclusion.blockHash }];
    await undoBlocks(recorded, { network, blocks });
    await finaliseBlocks(recorded, { network, blocks });
    const plans: string[] = [];
    for (const { sql: text, parameters } of queries) {
      if (!/^(select|update|delete)/.test(text)) continue;
      const explain = CompiledQuery.raw(`explain query plan ${text}`, [...parameters]);
      const { rows } = await ledger.db.executeQuery<{ detail: string }>(explain);
      plans.push(...rows.map(({ detail }) => detail));
    }
    const scan = new RegExp(`^SCAN (${tables.join("|")})\\b`);
    expect(plans.filter((step) => scan.test(step))).toEqual([]);
    expect(plans).toEqual(
      expect.arrayContaining([
        "SEARCH payments USING INDEX payments_identity (nonce=?)",
        "SEARCH payments USING INDEX payments_key (key_hash=?)",
        "SEARCH payments USING INDEX payments_transaction (transaction_id=?)",
        "SEARCH payments USING INDEX payments_in_blocks (network=? AND block_number=? AND block_hash=?)",
      ]),
    );
  });
});

/** A ledger as a restore leaves it, with payments of 500 payers, one in two by code of a key. */
async function fill(db: Transaction<LedgerSchema>): Promise<void> {
  for (const table of tables) {
    await sql`alter table ${sql.table(table)} set (autovacuum_enabled = false)`.execute(db);
  }
  // A restore writes the sums as they are: no trigger runs.
  await sql`set local session_replication_role = replica`.execute(db);
  const block = sql`'0x' || lpad(to_hex((n + 79) / 80), 64, '0')`;
  const state = sql.join(
    (["reserved", "queued", "submitted", "failed"] as const).map(
      (each) => sql`when n > ${sql.lit(numberOf(each, recent[each]))} then ${sql.lit(each)}`,
    ),
    sql` `,
  );
  const isConfirmed = sql`n <= ${sql.lit(payments - notConfirmed)}`;
  const isFinal = sql`n <= ${sql.lit(payments - notConfirmed - recent.confirmed)}`;
  const isHeld = sql`n > ${sql.lit(numberOf("reserved", recent.reserved))}`;
  const isQueued = sql`n > ${sql.lit(numberOf("queued", recent.queued))}`;
  await sql`
    insert into payments (id, network, asset, payer, nonce, value, valid_before, state, fingerprint,
      key_hash, token, owner, transaction_id, carried, is_alone, block_number, block_hash,
      transaction_hash, created_at, confirmed_at, final_at, delivered_at, refund_after)
    select lpad(n::text, 12, '0'), ${network}, ${asset}, '0x' || lpad(to_hex(n % 500), 40, '0'),
      '0x' || lpad(to_hex(n), 64, '0'), 10, case when ${isFinal} then 1 else 1e60 end, case ${state} else 'confirmed' end, 'GET /a',
      'key ' || n, case when ${isHeld} then 'token ' || n end, case when ${isHeld} then 'one' end,
      case when not ${isQueued} then lpad(((n + 19) / 20)::text, 12, '0') end, 1, 0,
      case when ${isConfirmed} then (n + 79) / 80 end, case when ${isConfirmed} then ${block} end,
      case when ${isConfirmed} then '0x' || lpad(to_hex((n + 19) / 20), 64, '0') end,
      n, case when ${isConfirmed} then n end, case when ${isFinal} then n end,
      case when ${isFinal} then n end, ${sql.lit((10 * day) / 1_000)}
    from generate_series(1, ${sql.lit(payments)}) n
  `.execute(db);
  await sql`
    insert into refundable_payments (payment_id, due_at)
    select id, created_at + ${sql.lit(10 * day)} from payments
  `.execute(db);
  await sql`
    insert into orders (payment_id, pay_to, valid_after, signature)
    select id, ${order.payTo}, 0, ${order.signature} from payments
  `.execute(db);
  await sql`
    insert into transactions (id, network, relayer, nonce, state, epoch, gas_limit, created_at,
      hash, block_number, block_hash)
    select lpad(t::text, 12, '0'), ${network}, ${relayer}, t,
      case when n > ${sql.lit(numberOf("submitted", recent.submitted))} then 'open' when ${isFinal} then 'final' else 'settled' end,
      1, 1, t, '0x' || lpad(to_hex(t), 64, '0'), (n + 79) / 80, ${block}
    from generate_series(1, ${sql.lit(payments / 20)}) t, lateral (select t * 20 as n) of
    where not n > ${sql.lit(numberOf("queued", recent.queued))}
  `.execute(db);
  await sql`
    insert into broadcasts (hash, transaction_id, raw, content, max_fee_per_gas, created_at)
    select 'form ' || id, id, '0x02' || repeat('00', 1000), 'payments', 1, created_at
    from transactions
  `.execute(db);
  await sql`
    insert into answers (payer, key_hash, payment_id, sealed, expires_at)
    select payer, key_hash, id, 'sealed', ${sql.lit(now + 1)} from payments
    where state = 'confirmed' and id > ${sql.lit(idOf(payments / 2))}
  `.execute(db);
}
