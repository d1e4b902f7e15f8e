import { devSeedPhrase } from "@coinslot/devnet";
import { useProgram } from "@coinslot/devnet/use-program";
import { openDatabase, registerEndpoints } from "@coinslot/storage";
import { sql } from "kysely";
import { expect, it, onTestFinished, vi } from "vitest";
import { ledgerLater } from "../../testing/ledger-later.ts";
import type { SignedTestPayment } from "../../testing/payments.ts";
import {
  type SellingProcess,
  sellingProgram,
  startSelling,
  useFormerProgram,
} from "../../testing/selling-process.ts";
import { startSettlingDevnet } from "../../testing/settling-devnet.ts";
import { createLedger } from "../create-ledger.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { runsOlderProgram, sendHeartbeat } from "../maintenance/processes.ts";
import { retentionSteps } from "../maintenance/retention-steps.ts";
import { sumPayments } from "../maintenance/sum-payments.ts";
import { listPayments } from "../queries/list-payments.ts";
import { paymentStats } from "../queries/payment-stats.ts";
import type { LedgerSchema } from "../schema.ts";
import { ledgerMigrations } from "./ledger-migrations.ts";

/** The program of the last release that has landed, with six migrations. */
const previous = useFormerProgram(new URL("fixtures/program-d8de07e.mjs.br", import.meta.url));
const present = useProgram(sellingProgram);

// Takes 10 to 25 seconds: four processes start, each sells, and the chain answers each of them.
const price = 1_000n;
const day = 86_400_000;

it("sells beside the previous release under load, migrates beside it, and takes over from it", async () => {
  const settling = await startSettlingDevnet("postgres", { isUnmade: true });
  onTestFinished(() => settling.stop());
  const { devnet, pay, balanceOf } = settling;
  const task = {
    network: devnet.network,
    rpcUrl: devnet.rpcUrl,
    seedPhrase: devSeedPhrase,
    addressCount: 2,
    ledger: settling.ledger.url,
    heartbeatLeaseSeconds: 3,
  };
  /** Outcomes of all sales, by their payments. */
  const outcomes = new Map<SignedTestPayment, string>();
  const sell = async (seller: SellingProcess, payment: SignedTestPayment) => {
    const outcome = await seller.sell(payment);
    outcomes.set(payment, outcome);
    return outcome;
  };
  /** Buyers of one seller, each of whom buys one thing after the other, until a sale fails. */
  const load = (seller: SellingProcess, buyers: number) => {
    let isStopped = false;
    let sold = 0;
    const buying = Array.from({ length: buyers }, async () => {
      while (!isStopped) {
        if ((await sell(seller, await pay())) === "sold") sold += 1;
        else isStopped = true;
      }
    });
    return {
      sells: (count: number) => {
        const goal = sold + count;
        return vi.waitFor(() => expect(sold).toBeGreaterThanOrEqual(goal), { timeout: 20_000 });
      },
      async stop() {
        isStopped = true;
        await Promise.all(buying);
      },
    };
  };

  const [first, second] = await Promise.all([
    startSelling(previous(), task),
    startSelling(previous(), task),
  ]);
  const buyersOfFirst = load(first, 3);
  const buyersOfSecond = load(second, 3);
  await Promise.all([buyersOfFirst.sells(10), buyersOfSecond.sells(10)]);

  const next = await startSelling(present(), task);
  const buyersOfNext = load(next, 3);
  await Promise.all([buyersOfFirst, buyersOfSecond, buyersOfNext].map(({ sells }) => sells(15)));
  await expect(startSelling(previous(), task)).rejects.toThrow(
    `The facilitator tables are at version ${ledgerMigrations.migrations.length}, and this program supports 6: a newer release has used this database.`,
  );
  const ledger = await openBeside(settling.ledger.url);
  // Not by the migration: the table had payments, which would have waited for it.
  await vi.waitFor(
    async () => expect(await readIndexes(ledger)).toEqual(["payments_in_blocks"]),
    20_000,
  );
  expect(await runsOlderProgram(ledger)).toBe(true);
  while (await sumPayments(ledger));
  // Settlements of the other release make events, too: by triggers.
  const hook = { id: "whk_1", url: "https://shop.example", secrets: [] };
  await registerEndpoints(ledger, [{ ...hook, types: ["payment.settled", "payment.delivered"] }]);
  const registeredAt = Date.now();
  await Promise.all([buyersOfFirst, buyersOfSecond].map(({ sells }) => sells(5)));

  // One is killed under load, one is stopped in order, and the other release has all buyers.
  const unanswered = await pay();
  const lastSale = sell(second, unanswered);
  const killed = second.kill();
  const stopped = buyersOfFirst.stop().then(() => first.stop());
  await Promise.all([killed, lastSale, buyersOfSecond.stop()]);
  expect(await stopped).toBe(0);
  await buyersOfNext.sells(15);
  // Buyers of the killed process come again, before retention in a year ends their payments.
  const lost = [...outcomes].filter(([, outcome]) => outcome === "lost");
  expect(lost.map(([payment]) => payment)).toContain(unanswered);
  await Promise.all(
    lost.map(([payment]) =>
      vi.waitFor(async () => expect(["sold", "delivered"]).toContain(await sell(next, payment)), {
        timeout: 20_000,
        interval: 200,
      }),
    ),
  );
  // Rows of the long dead stay for ten leases; retention begins then, under load.
  await sql`delete from processes where schema_version is null`.execute(ledger.db);
  expect(await runsOlderProgram(ledger)).toBe(false);
  await devnet.mine(4);
  await archiveAll(ledger);
  await buyersOfNext.sells(5);
  await buyersOfNext.stop();

  expect(await next.stop()).toBe(0);

  const count = outcomes.size;
  expect(
    [...outcomes.values()].filter((outcome) => !["sold", "delivered"].includes(outcome)),
  ).toEqual([]);
  expect(await balanceOf(devnet.accounts.seller.address)).toBe(price * BigInt(count));
  const { payments } = await listPayments(ledger, { limit: 1_000 });
  expect(payments).toHaveLength(count);
  expect(new Set(payments.map(({ state }) => state))).toEqual(new Set(["confirmed"]));
  expect(payments.filter(({ deliveredAt }) => deliveredAt === undefined)).toEqual([]);
  expect(payments.filter(({ isPruned }) => isPruned).length).toBeGreaterThan(30);
  const later = payments.filter(({ createdAt }) => createdAt > registeredAt);
  expect(later.length).toBeGreaterThan(10);
  const told = await readTold(ledger);
  expect(later.filter(({ id }) => told.get(id) !== "settled,delivered")).toEqual([]);
  const sums = [{ state: "confirmed", count, amount: price * BigInt(count) }];
  expect(await paymentStats(ledger)).toMatchObject(sums);
  while (await sumPayments(ledger));
  expect(await paymentStats(ledger)).toMatchObject(sums);
});

async function openBeside(url: string): Promise<LedgerContext> {
  const database = await openDatabase<LedgerSchema>({ url });
  onTestFinished(() => database.close());
  return createLedger({
    database,
    processId: "beside",
    now: Date.now,
    heartbeatLeaseMs: 10_000,
    keepAnswersMs: 60_000,
    releaseLimit: { count: 20, windowMs: 60_000 },
  });
}

/** The indexes over blocks of payments that statements use. */
async function readIndexes({ db }: LedgerContext): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_index join pg_class on pg_class.oid = indexrelid
    where relname in ('payments_in_blocks', 'payments_not_final') and indisvalid
  `.execute(db);
  return rows.map(({ name }) => name);
}

/** Events of each payment, in their order. */
async function readTold({ db }: LedgerContext): Promise<Map<string, string>> {
  const { rows } = await sql<{ key: string; types: string }>`
    select key, string_agg(substr(type, 9), ',' order by seq) as types
    from outbox_events group by key
  `.execute(db);
  return new Map(rows.map(({ key, types }) => [key, types]));
}

/** One pass of retention in a year. */
async function archiveAll(ledger: LedgerContext): Promise<void> {
  await sendHeartbeat(ledger);
  const later = ledgerLater(ledger, 366 * day);
  const times = { keepPaymentsMs: undefined, keepUndeliveredMs: undefined };
  for (const step of retentionSteps(later, { ...times, keepSignaturesMs: 30 * day })) {
    while ((await step()) === "again");
  }
}
