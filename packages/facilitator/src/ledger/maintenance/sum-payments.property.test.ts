import { effort } from "@coinslot/devnet/effort";
import fc from "fast-check";
import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import {
  authorization,
  expire,
  hash,
  network,
  order,
  takeLease,
  wish,
} from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { deliverPayment } from "../payments/deliver-payments.ts";
import { recordOutcomes } from "../payments/record-outcomes.ts";
import { releasePayment } from "../payments/release-payment.ts";
import { reservePayment } from "../payments/reserve-payments.ts";
import type { ReserveWish } from "../payments/reserve-request.ts";
import { paymentStats } from "../queries/payment-stats.ts";
import { storeTransaction } from "../transactions/store-transaction.ts";
import { finaliseBlocks, undoBlocks } from "../transactions/undo-blocks.ts";
import { archivePayments } from "./archive-payments.ts";
import { closePayments } from "./close-payments.ts";
import { sumPayments } from "./sum-payments.ts";

const hour = 3_600_000;
const day = 24 * hour;
const payers = 3;
const assets = [`0x${"a1".repeat(20)}`, `0x${"a2".repeat(20)}`] as const;

/** One event in the life of a ledger. `pick` chooses the payment, or the block. */
const events = fc.array(
  fc.record({
    kind: fc.constantFrom(
      "reserve",
      "reserve",
      "queue",
      "queue",
      "again",
      "release",
      "submit",
      "confirm",
      "confirm",
      "fail",
      "undo",
      "finalise",
      "close",
      "expire",
      "deliver",
      "forget",
      "forget",
      "wait",
      "wait",
      "sum",
      "begin",
    ),
    pick: fc.nat(20),
    value: fc.oneof(fc.bigInt(1n, 1_000n), fc.constant(2n ** 255n)),
  }),
  { minLength: 5, maxLength: 60 },
);

describe.each(engines)("sums by day on %s", (engine) => {
  const shared = ledgerForEachTest(engine, { releaseLimit: { count: 1e6, windowMs: 1 } });
  const { join, read, wait } = shared;

  it("agree with the payments after any history, on a ledger of any age", {
    timeout: 120_000,
  }, async () => {
    const ledger = await join("one");
    const lease = await takeLease(ledger);
    const history = createHistory(ledger, lease, wait);
    await fc.assert(
      fc.asyncProperty(events, async (list) => {
        for (const event of list) {
          if (event.kind === "begin") await forgetSums(ledger);
          else await history.play(event);
          // The result does not depend on the progress of the sums.
          expect(await statsOf(ledger)).toEqual(await count(ledger));
        }
        while (await sumPayments(ledger, 3));
        expect(await statsOf(ledger)).toEqual(await count(ledger));
        expect(await read(sql`select * from payment_changes`)).toEqual([]);
        expect(await sumsOfRows(ledger)).toEqual(await countEnded(ledger));
        expect(
          await read(sql`select state, payment_id as id from unpaid_payments order by id`),
        ).toEqual(
          await read(
            sql`select state, id from payments where state in ('failed', 'expired', 'released') order by id`,
          ),
        );
      }),
      { numRuns: (engine === "sqlite" ? 20 : 6) * effort },
    );
  });
});

/** As after the migration of a ledger that had these payments before. */
async function forgetSums(ledger: LedgerContext): Promise<void> {
  await ledger.write(async (transaction) => {
    for (const table of ["payment_sums", "payment_changes", "unpaid_payments"] as const) {
      await transaction.deleteFrom(table).execute();
    }
    await sql`
      update payment_sums_progress
      set summed_to = '', last_id = (select coalesce(max(id), '') from payments)
    `.execute(transaction);
  });
}

const sorted = (texts: readonly string[]) => [...texts].sort();

/** The statistics by day, without what was deleted. */
async function statsOf(ledger: LedgerContext): Promise<string[]> {
  const deleted = await countDeleted(ledger);
  const stats = await paymentStats(ledger, { by: ["day", "route"] });
  return sorted(
    stats.flatMap(({ day: of, asset, state, count: counted, amount }) => {
      const gone = deleted.get(`${of} ${asset} ${state}`) ?? { count: 0, amount: 0n };
      const left = counted - gone.count;
      return left === 0 ? [] : [`${of} ${asset} ${state} ${left} ${amount - gone.amount}`];
    }),
  );
}

/** Deleted payments, of the sums and of the changes. */
async function countDeleted({ db, dialect }: LedgerContext) {
  const deleted = new Map<string, { count: number; amount: bigint }>();
  const add = (key: string, counted: number, amount: bigint) => {
    const known = deleted.get(key) ?? { count: 0, amount: 0n };
    deleted.set(key, { count: known.count + counted, amount: known.amount + amount });
  };
  for (const row of await db.selectFrom("payment_sums").selectAll().execute()) {
    const key = `${nameOf(row.day)} ${row.asset} ${row.state}`;
    add(key, row.deleted_count, dialect.amount.decode(row.deleted_amount));
  }
  const changes = await db
    .selectFrom("payment_changes")
    .selectAll()
    .where("step", "=", 0)
    .execute();
  for (const row of changes) {
    add(`${nameOf(row.day)} ${row.asset} ${row.state}`, 1, dialect.amount.decode(row.value));
  }
  return deleted;
}

const nameOf = (number: number) => new Date(number * day).toISOString().slice(0, 10);

/** The same, one payment after the other. */
async function count(
  { db, dialect }: LedgerContext,
  states?: readonly string[],
): Promise<string[]> {
  const totals = new Map<string, { count: number; amount: bigint }>();
  for (const row of await db.selectFrom("payments").selectAll().execute()) {
    if (states !== undefined && !states.includes(row.state)) continue;
    const key = `${nameOf(Math.floor(row.created_at / day))} ${row.asset} ${row.state}`;
    const total = totals.get(key) ?? { count: 0, amount: 0n };
    total.count += 1;
    total.amount += dialect.amount.decode(row.value);
    totals.set(key, total);
  }
  return sorted([...totals].map(([key, total]) => `${key} ${total.count} ${total.amount}`));
}

const countEnded = (ledger: LedgerContext) =>
  count(ledger, ["confirmed", "failed", "expired", "released"]);

/** The rows of the sums alone, without what was deleted. */
async function sumsOfRows({ db, dialect }: LedgerContext): Promise<string[]> {
  const rows = await db.selectFrom("payment_sums").selectAll().execute();
  return sorted(
    rows.flatMap((row) => {
      const left = row.count - row.deleted_count;
      const amount = dialect.amount.decode(row.amount) - dialect.amount.decode(row.deleted_amount);
      return left === 0 ? [] : [`${nameOf(row.day)} ${row.asset} ${row.state} ${left} ${amount}`];
    }),
  );
}

type Event = { kind: string; pick: number; value: bigint };

/** Plays events on a ledger. Those that do not fit its state change nothing. */
function createHistory(
  ledger: LedgerContext,
  lease: Awaited<ReturnType<typeof takeLease>>,
  wait: (ms: number) => void,
) {
  const made: { id: string; wish: ReserveWish; token: string }[] = [];
  let nonce = 0;
  let blocks = 0;
  const seconds = () => BigInt(Math.floor(ledger.now() / 1000));
  const blockOf = (pick: number) => ({ number: pick, hash: hash(9_000 + pick) });
  const inclusionIn = (pick: number) => ({
    transactionHash: hash(100_000 + nonce),
    blockNumber: pick,
    blockHash: blockOf(pick).hash,
  });

  async function reserve(wanted: ReserveWish): Promise<void> {
    const result = await reservePayment(ledger, wanted);
    if (result.outcome === "reserved") {
      made.push({ id: result.paymentId, wish: wanted, token: result.token });
    }
  }

  const play = async ({ kind, pick, value }: Event): Promise<void> => {
    const chosen = made.at(-1 - (pick % Math.max(1, made.length)));
    const ids = chosen ? [chosen.id] : [];
    if (kind === "reserve" || kind === "queue") {
      const payer = `0x${(pick % payers).toString(16).padStart(40, "0")}` as const;
      const asset = assets[pick % 2];
      return reserve(
        wish({
          id: authorization({ payer, ...(asset ? { asset } : {}) }),
          value,
          validBefore: seconds() + BigInt(pick) * 3_600n,
          ...(kind === "queue" ? { order } : {}),
        }),
      );
    }
    if (kind === "wait") return wait(pick * 4 * hour);
    if (kind === "sum") return void (await sumPayments(ledger, 3));
    if (kind === "expire") {
      return void (await expire(ledger, seconds()));
    }
    if (kind === "finalise") {
      return void (await finaliseBlocks(ledger, { network, blocks: [blockOf(pick % 5)] }));
    }
    if (kind === "undo") {
      return void (await undoBlocks(ledger, { network, blocks: [blockOf(pick % 5)] }));
    }
    if (kind === "forget") {
      return void (await archivePayments(ledger, {
        after: "",
        before: ledger.now() - day,
        now: ledger.now(),
        undeliveredBefore: undefined,
        limit: 100,
      }));
    }
    if (chosen === undefined) return;
    if (kind === "again") return reserve({ ...chosen.wish, value });
    if (kind === "release") {
      const { payer } = chosen.wish.id;
      return releasePayment(ledger, { token: chosen.token, payer, countsAgainstPayer: false });
    }
    if (kind === "deliver") return deliverPayment(ledger, chosen.token);
    if (kind === "close") return void (await closePayments(ledger, ids));
    if (kind === "confirm") {
      blocks = pick % 5;
      return void (await recordOutcomes(ledger, [
        { confirmed: { ids, inclusion: inclusionIn(blocks) } },
      ]));
    }
    if (kind === "fail") {
      const reason = "invalid_exact_evm_transaction_failed";
      return void (await recordOutcomes(ledger, [{ failed: [{ ids, reason }] }]));
    }
    if (kind === "submit") {
      nonce += 1;
      await storeTransaction(ledger, lease, {
        id: `transaction ${nonce}`,
        network,
        relayer: `0x${"cc".repeat(20)}`,
        nonce,
        gasLimit: 1n,
        payments: [{ id: chosen.id, fingerprint: chosen.wish.fingerprint }],
        broadcast: {
          hash: hash(1_000_000 + nonce),
          raw: "0x02",
          content: "payments",
          maxFeePerGas: 7n,
          maxPriorityFeePerGas: 1n,
        },
      });
    }
  };
  return { play };
}
