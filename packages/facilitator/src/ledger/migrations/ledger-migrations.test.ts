import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describeSchema, restoreDatabase, withDatabase } from "@coinslot/devnet";
import { buildIndex, migrate, openDatabase } from "@coinslot/storage";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { postEarlier } from "../../books/post-earlier.ts";
import { readChargesOf } from "../../books/read-charges.ts";
import { ledgerLater } from "../../testing/ledger-later.ts";
import { createTestLedger, engines, type TestLedger } from "../../testing/settling-devnet.ts";
import { accounts } from "../books-schema.ts";
import { createLedger } from "../create-ledger.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { foldCharges } from "../maintenance/fold-charges.ts";
import { releaseAbandoned, sendHeartbeat } from "../maintenance/processes.ts";
import { retentionSteps } from "../maintenance/retention-steps.ts";
import { sumPayments } from "../maintenance/sum-payments.ts";
import { type LedgerDatabase, openLedger } from "../open-ledger.ts";
import { reservePayment } from "../payments/reserve-payments.ts";
import { getPayments, listPayments } from "../queries/list-payments.ts";
import { paymentStats } from "../queries/payment-stats.ts";
import { findOpenTransactions } from "../transactions/find-transactions.ts";
import { blockIndexes } from "./index-blocks.ts";
import { searchIndexes } from "./index-searches.ts";
import { ledgerMigrations } from "./ledger-migrations.ts";

/**
 * Ledgers of killed processes, one for each schema that has landed. Each with its number of
 * migrations and of archived payments. Schemas 7 to 9 were steps to the tenth alone.
 */
const fixtures = [
  { name: "01-654c325", migrations: 2, archived: 0 },
  { name: "02-8c680ad", migrations: 5, archived: 0 },
  { name: "03-42b24c4", migrations: 6, archived: 0 },
  { name: "04-157db18", migrations: 10, archived: 1 },
];

const day = 86_400_000;

describe.each(engines)("the ledger's migrations, on %s", (engine) => {
  let place: TestLedger;
  let opened: LedgerDatabase | undefined;

  beforeEach(async () => {
    place = await createTestLedger(engine);
  });

  afterEach(async () => {
    await opened?.close();
    opened = undefined;
    await place.drop();
  });

  const readSchema = async () =>
    `${(await withDatabase(place.url, describeSchema)).join("\n").replaceAll("), ", "),\n")}\n`;
  const readFixture = (name: string) =>
    readFile(join(import.meta.dirname, `fixtures/${name}.${engine}.sql`), "utf8");
  const schemaFile = (count: number) => `./fixtures/schema-${count}.${engine}.sql`;

  async function openNewest(): Promise<LedgerContext> {
    opened = await openLedger({ url: place.url, processId: "newest" });
    return createLedger({
      database: opened.database,
      processId: "newest",
      now: Date.now,
      heartbeatLeaseMs: 30_000,
      keepAnswersMs: 60_000,
      releaseLimit: { count: 20, windowMs: 60_000 },
    });
  }

  it("produce the pinned schema at each step", async () => {
    const database = await openDatabase({ url: place.url });
    try {
      for (const count of ledgerMigrations.migrations.keys()) {
        const migrations = ledgerMigrations.migrations.slice(0, count + 1);
        await migrate(database, { ...ledgerMigrations, migrations });
        await expect(await readSchema()).toMatchFileSnapshot(schemaFile(count + 1));
      }
    } finally {
      await database.close();
    }
  });

  it("keep the records of payers with code, without payments before a burn or tried in vain", async () => {
    const database = await openDatabase({ url: place.url });
    const rows = [
      { id: "a", network: "one", is_alone: 1, confirmed_at: 10 },
      { id: "b", network: "one", is_alone: 1, confirmed_at: 11 },
      { id: "of a key", network: "one", is_alone: 0, confirmed_at: 12 },
      { id: "before a burn", network: "one", is_alone: 1, confirmed_at: 9 },
      { id: "c", network: "two", is_alone: 1, confirmed_at: 10 },
      { id: "in vain", network: "two", is_alone: 1, confirmed_at: 10, gas_share: 5 },
    ];
    try {
      const migrations = ledgerMigrations.migrations.slice(0, 6);
      await migrate(database, { ...ledgerMigrations, migrations });
      for (const { id, network, is_alone, confirmed_at, gas_share = null } of rows) {
        await sql`
          insert into payments (id, network, asset, payer, nonce, value, valid_before, state,
            fingerprint, carried, is_alone, created_at, confirmed_at, gas_share)
          values (${id}, ${network}, 'asset', 'payer', ${id}, ${database.dialect.amount.encode(1n)},
            ${database.dialect.amount.encode(9n)}, 'confirmed', 'GET /', 1, ${is_alone}, 1,
            ${confirmed_at}, ${gas_share})
        `.execute(database.kysely);
      }
      await sql`insert into code_payers values ('payer', 10, 1)`.execute(database.kysely);
      await migrate(database, ledgerMigrations);
      const { rows: records } = await sql`select * from code_records order by network`.execute(
        database.kysely,
      );
      const record = { payer: "payer", counts_from: 10 };
      expect(records).toEqual([
        { ...record, network: "one", confirmed: 2 },
        { ...record, network: "two", confirmed: 1 },
      ]);
    } finally {
      await database.close();
    }
  });

  it("add up charges from before their sums beside a process of the previous release", async () => {
    const [contract, token] = [`0x${"40".repeat(20)}`, `0x${"aa".repeat(20)}`] as const;
    const database = await openDatabase({ url: place.url });
    const { dialect, kysely } = database;
    /** As that release writes it: the sum of a channel's day. */
    const charge = (channel: number, amount: bigint) =>
      dialect.insertMany(
        kysely as unknown as LedgerContext["db"],
        "channel_sums",
        [
          {
            ...{ network: "eip155:9745", contract, channel_id: `0x${channel}`, day: channel % 2 },
            ...{ route_id: 1, is_reversal: 0, count: dialect.amount.encode(1n) },
            amount: dialect.amount.encode(amount),
          },
        ],
        {
          keys: ["network", "contract", "channel_id", "day", "route_id", "is_reversal"],
          add: ["count", "amount"],
        },
      );
    try {
      const title = "sums of charges";
      const step = ledgerMigrations.migrations.findIndex((each) => each.title === title);
      const migrations = ledgerMigrations.migrations.slice(0, step);
      await migrate(database, { ...ledgerMigrations, migrations });
      for (const channel of [1, 2, 3, 4, 5, 6, 7, 8, 9]) {
        await sql`
          insert into channel_terms (network, contract, channel_id, payer, payer_authorizer,
            receiver, receiver_authorizer, token, withdraw_delay, salt, created_at)
          values ('eip155:9745', ${contract}, ${`0x${channel}`}, 'a', 'b', 'c', 'd', ${token}, 9,
            '0x', 1)
        `.execute(kysely);
      }
      for (const channel of [1, 2, 4, 5, 6, 8]) await charge(channel, 100n);
      await charge(2, 50n);
      const ledger = await openNewest();
      const sums = async () =>
        (await readChargesOf(ledger, { day: 0, before: 9 })).map((row) => [
          ...[row.day, row.asset, row.count, row.amount],
        ]);
      expect(await sums()).toEqual([
        [0, token, 5, 450n],
        [1, token, 2, 200n],
      ]);
      // Before and behind those that are added up, and between them.
      for (const channel of [1, 2, 3, 7, 8, 9]) await charge(channel, 1n);
      const expected = [
        [0, token, 7, 452n],
        [1, token, 6, 204n],
      ];
      expect(await sums()).toEqual(expected);
      expect(await foldCharges(ledger, 3)).toBe(true);
      expect(await sums()).toEqual(expected);
      for (const channel of [1, 2, 3, 7, 8, 9]) await charge(channel, 10n);
      const later = [
        [0, token, 9, 472n],
        [1, token, 10, 244n],
      ];
      expect(await sums()).toEqual(later);
      while (await foldCharges(ledger, 3)) expect(await sums()).toEqual(later);
      expect(await sums()).toEqual(later);
      expect(await ledger.db.selectFrom("charge_changes").selectAll().execute()).toEqual([]);
    } finally {
      await database.close();
    }
  });

  describe("a ledger beside a process of the previous release", () => {
    /**
     * The identity of a row that the previous release writes: without the columns of the last step.
     */
    const identity = {
      network: "eip155:9745",
      asset: `0x${"aa".repeat(20)}`,
      payer: `0x${"bb".repeat(20)}`,
      nonce: `0x${"01".repeat(32)}`,
    } as const;
    const { network, asset, payer, nonce } = identity;
    const [value, validBefore] =
      engine === "sqlite" ? ["01:5", "10:4000000000"] : ["5", "4000000000"];
    const insertByPrevious = () =>
      withDatabase(place.url, ({ execute }) =>
        execute(`
          insert into payments (id, network, asset, payer, nonce, value, valid_before, state,
            fingerprint, carried, is_alone, created_at)
          values ('a', '${network}', '${asset}', '${payer}', '${nonce}', '${value}',
            '${validBefore}', 'released', 'GET /', 0, 0, 1)
        `),
      );
    const reserve = (ledger: LedgerContext) =>
      reservePayment(ledger, {
        id: identity,
        fingerprint: "GET /",
        value: 5n,
        validBefore: 4_000_000_000n,
        payTo: relayer,
      });

    it("find a payment of the other release by its identity", async () => {
      const ledger = await openNewest();
      await insertByPrevious();
      expect(await reserve(ledger)).toMatchObject({ outcome: "reserved", paymentId: "a" });
      const { payments } = await listPayments(ledger, {});
      expect(payments).toMatchObject([{ kind: "eip3009", authorization: identity }]);
    });

    it("refuse a second row for one authorization from either release", async () => {
      const ledger = await openNewest();
      await reserve(ledger);
      await expect(insertByPrevious()).rejects.toThrow(/unique/i);
    });
  });

  it("refuse a ledger that a newer program has migrated, and name both versions", async () => {
    await (await openLedger({ url: place.url, processId: "older" })).close();
    const { length } = ledgerMigrations.migrations;
    await withDatabase(place.url, ({ execute }) =>
      execute(
        `insert into coinslot_migrations (name, version, title, applied_at_ms)
          values ('facilitator', ${length + 1}, 'a step of the next release', 1)`,
      ),
    );
    for (const readOnly of [false, true]) {
      await expect(
        openLedger({ url: place.url, processId: "older", readOnly }),
      ).rejects.toMatchObject({
        kind: "newer-schema",
        message: expect.stringContaining(
          `The facilitator tables are at version ${length + 1}, and this program supports ${length}: a newer release has used this database.`,
        ),
      });
    }
  });

  describe.each(fixtures)("from a ledger of $name", ({ name, migrations, archived }) => {
    beforeEach(async () => restoreDatabase(place.url, await readFixture(name)));

    it("start at the pinned schema", async () => {
      await expect(await readSchema()).toMatchFileSnapshot(schemaFile(migrations));
    });

    it("end at the newest schema, as in a new ledger, once its indexes are built", async () => {
      const { dialect, db: kysely } = await openNewest();
      for (const index of [...blockIndexes, ...searchIndexes]) {
        await buildIndex({ dialect, kysely }, index, new AbortController().signal);
      }
      const { length } = ledgerMigrations.migrations;
      await expect(await readSchema()).toMatchFileSnapshot(schemaFile(length));
    });

    it("keep every payment in its state, and the ledger in use", async () => {
      const ledger = await openNewest();
      await sendHeartbeat(ledger);
      // It has run for a lease, and knows which others live.
      ledger.heartbeat.unsureSince = Number.NEGATIVE_INFINITY;
      await releaseAbandoned(ledger);
      const { payments } = await listPayments(ledger, {});
      const found = payments.map(({ state, finalAt, deliveredAt, value }) => ({
        state,
        isFinal: finalAt !== undefined,
        isDelivered: deliveredAt !== undefined,
        value,
      }));
      const entry = (state: string, isFinal = false, isDelivered = false) => ({
        state,
        isFinal,
        isDelivered,
        value: 1_000n,
      });
      expect(found).toEqual([
        entry("submitted"),
        entry("failed"),
        // The killed process's reservations are given up.
        entry("released"),
        entry("released"),
        entry("confirmed"),
        entry("confirmed", true),
        ...Array.from({ length: 1 + archived }, () => entry("confirmed", true, true)),
      ]);
      expect(payments.filter(({ isPruned }) => isPruned)).toHaveLength(archived);
      const [submitted, , , released] = payments;
      if (submitted === undefined || released === undefined) throw new Error("The list is short.");
      const { network } = submitted.authorization;
      const open = await findOpenTransactions(ledger, { network, relayer });
      expect(open).toMatchObject([
        { nonce: 3 + archived, payments: [{ payment: { id: submitted.id } }] },
      ]);

      const reserved = await reservePayment(ledger, {
        id: released.authorization,
        fingerprint: "GET /anew",
        value: 5n,
        validBefore: 4_000_000_000n,
        payTo: relayer,
      });
      expect(reserved).toMatchObject({ outcome: "reserved" });
      expect(await getPayments(ledger, [released.id])).toMatchObject([
        { state: "reserved", value: 5n },
      ]);
    });

    it("sum every payment once, before and after the sums contain the old ones", async () => {
      const ledger = await openNewest();
      const listed = await countListed(ledger);
      expect(await countSummed(ledger)).toEqual(listed);
      while (await sumPayments(ledger, 2));
      expect(await countSummed(ledger)).toEqual(listed);
      await sendHeartbeat(ledger);
      // It has run for a lease, and knows which others live.
      ledger.heartbeat.unsureSince = Number.NEGATIVE_INFINITY;
      await releaseAbandoned(ledger);
      while (await sumPayments(ledger, 2));
      expect(await countSummed(ledger)).toEqual(await countListed(ledger));
    });

    it("post every confirmed payment to the books, once, before and after it is archived", async () => {
      const ledger = ledgerLater(await openNewest(), 366 * day);
      const { payments } = await listPayments(ledger, {});
      const confirmed = payments.filter(({ state }) => state === "confirmed");
      expect(await postEarlier(ledger, 1)).toBe(true);
      await sendHeartbeat(ledger);
      // It has run for a lease, and knows which others live.
      ledger.heartbeat.unsureSince = Number.NEGATIVE_INFINITY;
      const times = { keepPaymentsMs: undefined, keepUndeliveredMs: day };
      for (const step of retentionSteps(ledger, { ...times, keepSignaturesMs: day })) {
        while ((await step()) === "again");
      }
      while (await postEarlier(ledger, 1));
      const entries = await ledger.db.selectFrom("book_entries").selectAll().execute();
      const found = entries.map((entry) => ({ ...entry, id: undefined, pay_to_id: undefined }));
      const { wallet: debit, income: credit } = accounts;
      expect(found.sort((one, other) => (one.source_id < other.source_id ? 1 : -1))).toEqual(
        confirmed.map(({ id, authorization: { network, asset }, confirmedAt }) => ({
          ...{ source_id: id, debit, credit, network, asset, posted_at: confirmedAt },
          ...{ amount: ledger.dialect.amount.encode(1_000n), route_id: null, block_number: null },
        })),
      );
    });

    it("archive every payment that has ended, once a year has passed", async () => {
      const ledger = ledgerLater(await openNewest(), 366 * day);
      await sendHeartbeat(ledger);
      // It has run for a lease, and knows which others live.
      ledger.heartbeat.unsureSince = Number.NEGATIVE_INFINITY;
      await releaseAbandoned(ledger);
      const before = await listPayments(ledger, {});
      const times = { keepPaymentsMs: undefined, keepUndeliveredMs: day };
      for (const step of retentionSteps(ledger, { ...times, keepSignaturesMs: day })) {
        while ((await step()) === "again");
      }
      const { payments } = await listPayments(ledger, {});
      expect(payments.map(({ id, state }) => [id, state])).toEqual(
        before.payments.map(({ id, state }) => [id, state]),
      );
      // The submitted, the watched and the confirmed ones may change yet, and one keeps its answer.
      expect(payments.filter(({ isPruned }) => !isPruned)).toHaveLength(4);
    });
  });
});

/** Number and sum of the payments in each state, in the order of the states' names. */
async function countListed(ledger: LedgerContext) {
  const { payments } = await listPayments(ledger, {});
  const states = [...new Set(payments.map(({ state }) => state))].sort();
  return states.map((state) => {
    const listed = payments.filter((payment) => payment.state === state);
    return { state, count: listed.length, amount: BigInt(listed.length) * 1_000n };
  });
}

/** The same of the sums. */
async function countSummed(ledger: LedgerContext) {
  const stats = await paymentStats(ledger);
  const sums = stats.map(({ state, count, amount }) => ({ state, count, amount }));
  return sums.sort((a, b) => (a.state < b.state ? -1 : 1));
}

/** Of the fixtures. */
const relayer = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
