import {
  CompiledQuery,
  createQueryId,
  PostgresQueryCompiler,
  type RootOperationNode,
  SelectQueryNode,
  SqliteQueryCompiler,
  sql,
} from "kysely";
import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import {
  asset,
  authorization,
  hash,
  network,
  order,
  queue,
  wish,
} from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { archivePayments } from "../maintenance/archive-payments.ts";
import { sumPayments } from "../maintenance/sum-payments.ts";
import { recordOutcomes } from "../payments/record-outcomes.ts";
import { releasePayment } from "../payments/release-payment.ts";
import { reservePayment } from "../payments/reserve-payments.ts";
import { endedStates } from "../sums-schema.ts";
import { listPayments, type PaymentFilter, scanPayments } from "./list-payments.ts";
import { paymentStats } from "./payment-stats.ts";

const hour = 3_600_000;
const other = "eip155:988" as const;
const payerOf = (number: number) => `0x${number.toString(16).padStart(40, "0")}` as const;
const assets = [asset, `0x${"ab".repeat(20)}` as const] as const;
const routes = ["GET /a", "GET /b"] as const;

describe.each(engines)("the list of payments on %s", (engine) => {
  const { join, wait } = ledgerForEachTest(engine, { releaseLimit: { count: 1e6, windowMs: 1 } });

  it("is read page by page, with sums", async () => {
    const ledger = await join("one");
    const ids: string[] = [];
    for (let index = 0; index < 5; index += 1) {
      wait(1);
      ids.unshift(await queue(ledger, { value: 2n ** 255n }));
    }
    const first = await listPayments(ledger, { limit: 3 });
    expect(first.payments.map(({ id }) => id)).toEqual(ids.slice(0, 3));
    const second = await listPayments(ledger, { limit: 3, cursor: first.nextCursor });
    expect(second.payments.map(({ id }) => id)).toEqual(ids.slice(3));
    expect(second.nextCursor).toBeUndefined();
    expect((await listPayments(ledger, { state: "failed" })).payments).toEqual([]);
    expect((await listPayments(ledger, { payer: `0x${"BB".repeat(20)}` })).payments).toHaveLength(
      5,
    );
    expect(await paymentStats(ledger)).toEqual([
      { network, asset, state: "queued", count: 5, amount: 5n * 2n ** 255n },
    ]);
  });

  /** Payments of five days in every state that a test can reach quickly. */
  async function fill(ledger: LedgerContext): Promise<void> {
    for (let index = 0; index < 60; index += 1) {
      wait(2 * hour);
      const route = routes[index % 2] ?? routes[0];
      const id = authorization({
        payer: payerOf(index % 4),
        network: index % 9 === 0 ? other : network,
        asset: assets[index % 5 === 0 ? 1 : 0],
      });
      const reserved = await reservePayment(
        ledger,
        wish({
          id,
          value: BigInt(index + 1),
          sold: { route, resource: "https://shop.example/a", wire: "x402v2" },
          ...(index % 6 < 4 ? { order } : {}),
        }),
      );
      if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
      const { paymentId, token } = reserved;
      const inclusion = {
        transactionHash: hash(index),
        blockNumber: index,
        blockHash: hash(index),
      };
      if (index % 6 < 2) {
        await recordOutcomes(ledger, [{ confirmed: { ids: [paymentId], inclusion } }]);
      }
      const reason = "invalid_exact_evm_transaction_failed";
      if (index % 6 === 2)
        await recordOutcomes(ledger, [{ failed: [{ ids: [paymentId], reason }] }]);
      if (index % 6 === 4) {
        await releasePayment(ledger, { token, payer: id.payer, countsAgainstPayer: false });
      }
      if (index === 40) while (await sumPayments(ledger));
    }
  }

  /** Each filter that the command line and the API offer, and combinations. */
  function filtersOf(now: number): PaymentFilter[] {
    const time = { createdFrom: now - 70 * hour - 1, createdBefore: now - 9 * hour };
    const single: PaymentFilter[] = [
      {},
      ...(["reserved", "queued", "confirmed", "failed", "released", "expired"] as const).map(
        (state) => ({ state }),
      ),
      { network: other },
      { network: "eip155:1" },
      { asset: assets[1] },
      { route: routes[1] },
      { route: "GET /never" },
      { payer: payerOf(2) },
    ];
    const pairs = single.flatMap((one, index) =>
      single.slice(index + 1).map((two) => ({ ...one, ...two })),
    );
    return [...single, ...pairs].flatMap((filter) => [filter, { ...filter, ...time }]);
  }

  /** Moves every payment that has ended into the archive, and returns their number. */
  async function archiveEnded(ledger: LedgerContext): Promise<number> {
    const time = { valid_before: ledger.dialect.amount.encode(1n), token: null, closed_at: 1 };
    await ledger.db
      .updateTable("payments")
      .set({ ...time, final_at: 1, delivered_at: 1 })
      .where("state", "in", endedStates)
      .execute();
    const { ended } = await archivePayments(ledger, {
      after: "",
      before: ledger.now() + 1,
      now: ledger.now(),
      undeliveredBefore: undefined,
      limit: 1_000,
    });
    return ended;
  }

  const places = [{ place: "its table" }, { place: "the archive" }];

  it.each(places)(
    "holds exactly the payments of each filter, page by page, from $place",
    async ({ place }) => {
      const ledger = await join("one");
      await fill(ledger);
      const all = (await listPayments(ledger, { limit: 1_000 })).payments;
      expect(all).toHaveLength(60);
      const routeOf = new Map(
        (
          await ledger.db
            .selectFrom("payments")
            .innerJoin("sold_names", "sold_names.id", "route_id")
            .select(["payments.id", "name"])
            .execute()
        ).map(({ id, name }) => [id, name]),
      );
      if (place === "the archive") expect(await archiveEnded(ledger)).toBe(40);
      for (const filter of filtersOf(ledger.now())) {
        const expected = all.filter(
          ({ id, state, authorization: of, createdAt }) =>
            (filter.state ?? state) === state &&
            (filter.network ?? of.network) === of.network &&
            (filter.asset ?? of.asset) === of.asset &&
            (filter.payer ?? of.payer) === of.payer &&
            (filter.route ?? routeOf.get(id)) === routeOf.get(id) &&
            (filter.createdFrom ?? 0) <= createdAt &&
            createdAt < (filter.createdBefore ?? Number.POSITIVE_INFINITY),
        );
        const found: string[] = [];
        let cursor: string | undefined;
        do {
          const page = await listPayments(ledger, { ...filter, limit: 7, cursor });
          found.push(...page.payments.map(({ id }) => id));
          cursor = page.nextCursor;
        } while (cursor !== undefined);
        expect({ filter, found }).toEqual({ filter, found: expected.map(({ id }) => id) });
      }
    },
  );

  it.each(places)(
    "counts any range of time by day and by route, from $place",
    async ({ place }) => {
      const ledger = await join("one");
      await fill(ledger);
      const { payments } = await listPayments(ledger, { limit: 1_000 });
      if (place === "the archive") expect(await archiveEnded(ledger)).toBe(40);
      const ends = [undefined, 0, 17, 24, 48.5, 71, 100].map((hours) =>
        hours === undefined ? undefined : ledger.now() - hours * hour,
      );
      for (const createdFrom of ends) {
        for (const createdBefore of ends) {
          const within = payments.filter(
            ({ createdAt }) =>
              createdAt >= (createdFrom ?? 0) && createdAt < (createdBefore ?? createdAt + 1),
          );
          const stats = await paymentStats(ledger, { createdFrom, createdBefore });
          const byDay = await paymentStats(ledger, {
            createdFrom,
            createdBefore,
            by: ["day", "route"],
          });
          for (const each of [stats, byDay]) {
            expect(each.reduce((sum, { count }) => sum + count, 0)).toBe(within.length);
            expect(each.reduce((sum, { amount }) => sum + amount, 0n)).toBe(
              within.reduce((sum, { value }) => sum + value, 0n),
            );
          }
          expect(byDay.every(({ route }) => route !== undefined)).toBe(true);
        }
      }
    },
  );

  it("goes through no table of payments for any filter, where an index can serve it", async () => {
    const ledger = await join("one");
    await fill(ledger);
    const nodes: RootOperationNode[] = [];
    const db = ledger.db.withPlugin({
      transformQuery({ node }) {
        nodes.push(node);
        return node;
      },
      transformResult: async ({ result }) => result,
    });
    const { dialect } = ledger;
    const { payments } = await listPayments(ledger, { limit: 1_000 });
    for (const filter of filtersOf(ledger.now())) {
      for (const cursor of [undefined, payments[30]?.id]) {
        await listPayments({ db, dialect }, { ...filter, cursor, limit: 7 });
        await scanPayments({ db, dialect }, { ...filter, cursor }, 7);
        const scans = await findScans(ledger, nodes.splice(0));
        expect({ filter, cursor, scans }).toEqual({ filter, cursor, scans: [] });
      }
    }
    await paymentStats({ db, dialect }, { createdFrom: ledger.now() - 30 * hour });
    expect(nodes.length).toBeGreaterThan(4);
    expect(await findScans(ledger, nodes)).toEqual([]);
  });
});

/** Steps of the plans of these queries that go through all payments. */
async function findScans(
  { db, dialect }: LedgerContext,
  nodes: readonly RootOperationNode[],
): Promise<string[]> {
  const isSqlite = dialect.engine === "sqlite";
  const compiler = isSqlite ? new SqliteQueryCompiler() : new PostgresQueryCompiler();
  return db.transaction().execute(async (transaction) => {
    // The test's table is so small that its pages would be read as a whole.
    if (!isSqlite) await sql`set local enable_seqscan = off`.execute(transaction);
    const steps: string[] = [];
    for (const node of nodes) {
      if (!SelectQueryNode.is(node)) continue;
      const { sql: text, parameters } = compiler.compileQuery(node, createQueryId());
      const explain = isSqlite ? "explain query plan" : "explain";
      const { rows } = await transaction.executeQuery<Record<string, unknown>>(
        CompiledQuery.raw(`${explain} ${text}`, [...parameters]),
      );
      steps.push(...rows.map((row) => String(row.detail ?? row["QUERY PLAN"])));
      // Of two bounds, the index is entered by one, and the other's rows are read for nothing.
      const isAlongIds = /from "(archived_)?payments" where/.test(text) && !text.startsWith("with");
      if (isAlongIds && (text.match(/"id" </g) ?? []).length > 1) steps.push(`two bounds: ${text}`);
    }
    return steps.filter((step) => fullScan.test(step));
  });
}

/** Also all that is older than a cursor. */
const fullScan =
  /^SCAN (payments|unpaid_payments)$|Seq Scan on (payments|unpaid_payments)|^SEARCH (archived_)?payments .*\(id<\?\)$|^two bounds/;
