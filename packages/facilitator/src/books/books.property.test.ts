import fc from "fast-check";
import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { accounts } from "../ledger/books-schema.ts";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { archivePayments } from "../ledger/maintenance/archive-payments.ts";
import { closePayments } from "../ledger/maintenance/close-payments.ts";
import { recordOutcomes } from "../ledger/payments/record-outcomes.ts";
import { releasePayment } from "../ledger/payments/release-payment.ts";
import { reservePayment } from "../ledger/payments/reserve-payments.ts";
import type { ReserveWish } from "../ledger/payments/reserve-request.ts";
import { storeTransaction } from "../ledger/transactions/store-transaction.ts";
import { finaliseBlocks, undoBlocks } from "../ledger/transactions/undo-blocks.ts";
import { ledgerForEachTest } from "../testing/ledger-for-each-test.ts";
import {
  authorization,
  hash,
  network,
  order,
  takeLease,
  wish,
} from "../testing/ledger-payments.ts";
import { engines } from "../testing/settling-devnet.ts";
import { postEarlier } from "./post-earlier.ts";

const day = 86_400_000;
const assets = [`0x${"a1".repeat(20)}`, `0x${"a2".repeat(20)}`] as const;
const routes = ["GET /a", "GET /b"] as const;

/** One event in the life of a ledger. `pick` chooses the payment, or the block. */
const events = fc.array(
  fc.record({
    kind: fc.constantFrom(
      "queue",
      "queue",
      "refund",
      "again",
      "release",
      "submit",
      "submit",
      "confirm",
      "confirm",
      "settle",
      "fail",
      "undo",
      "undo by the previous release",
      "finalise",
      "close",
      "archive",
      "wait",
      "crash",
      "begin",
      "post earlier",
    ),
    pick: fc.nat(20),
    value: fc.oneof(fc.bigInt(1n, 1_000n), fc.constant(2n ** 255n)),
  }),
  { minLength: 5, maxLength: 60 },
);

describe.each(engines)("the books on %s", (engine) => {
  const shared = ledgerForEachTest(engine, { releaseLimit: { count: 1e6, windowMs: 1 } });

  it("have an entry for each movement of any history, on a ledger of any age", {
    timeout: 120_000,
  }, async () => {
    const ledger = await shared.join("one");
    const history = createHistory(ledger, await takeLease(ledger), shared.wait);
    const model = createModel();
    await fc.assert(
      fc.asyncProperty(events, async (list) => {
        for (const event of list) {
          const before = await movedMoney(ledger);
          if (event.kind === "begin") {
            await beginBooks(ledger);
            model.begin(before);
            continue;
          }
          if (event.kind === "post earlier") await postEarlier(ledger, 2);
          else await history.play(event);
          model.change(before, await movedMoney(ledger));
          // A movement is posted at once, whatever is left to post of earlier ones.
          expect(await readEntries(ledger)).toEqual(expect.arrayContaining(model.changes()));
        }
        while (await postEarlier(ledger, 2));
        expect(await readEntries(ledger)).toEqual(model.all());
        expect(await balances(ledger)).toEqual(await standing(ledger));
      }),
      { numRuns: engine === "sqlite" ? 100 : 20 },
    );
  });
});

/** Money that a payment or a transaction has moved, by its id. Text that describes the entry. */
type Moved = Map<string, { debit: number; credit: number; rest: string }>;

/** Payments that are confirmed, and gas of transactions in a block. */
async function movedMoney({ db, dialect }: LedgerContext): Promise<Moved> {
  const moved: Moved = new Map();
  const { rows } = await sql<{
    id: string;
    asset: string | Uint8Array;
    value: never;
    route_id: number | null;
    pay_to_id: number | null;
    refund_of: string | null;
  }>`
    select id, asset, value, route_id, pay_to_id, refund_of from payments where state = 'confirmed'
  `.execute(db);
  const archived = await db
    .selectFrom("archived_payments")
    .select(["id", "asset", "value", "route_id", "pay_to_id", "refund_of"])
    .where("state", "=", "confirmed")
    .execute();
  for (const row of [...rows, ...archived]) {
    const asset =
      typeof row.asset === "string" ? row.asset : `0x${Buffer.from(row.asset).toString("hex")}`;
    moved.set(row.id, {
      debit: row.refund_of === null ? accounts.wallet : accounts.refunds,
      credit: row.refund_of === null ? accounts.income : accounts.float,
      rest: `${row.id} ${dialect.amount.decode(row.value)} ${asset} ${row.route_id} ${row.pay_to_id}`,
    });
  }
  const transactions = await db
    .selectFrom("transactions")
    .select(["id", "gas_cost"])
    .where("state", "in", ["settled", "final"])
    .execute();
  for (const { id, gas_cost } of transactions) {
    if (gas_cost === null) continue;
    const rest = `${id} ${dialect.amount.decode(gas_cost)}  null null`;
    moved.set(id, { debit: accounts.gas, credit: accounts.relayers, rest });
  }
  return moved;
}

/** The entries that a history must have, as texts. */
function createModel() {
  let opening: string[] = [];
  let changes: string[] = [];
  const post = (
    list: string[],
    { debit, credit, rest }: { debit: number; credit: number; rest: string },
  ) => list.push(`${debit} ${credit} ${rest}`);
  return {
    /** Books begin on a ledger with these movements. Gas from before them has no price. */
    begin(moved: Moved) {
      opening = [];
      changes = [];
      for (const each of moved.values()) if (each.debit !== accounts.gas) post(opening, each);
    },
    change(before: Moved, after: Moved) {
      for (const [id, each] of before) {
        if (after.get(id)?.rest === each.rest) continue;
        post(changes, { ...each, debit: each.credit, credit: each.debit });
      }
      for (const [id, each] of after) {
        if (before.get(id)?.rest !== each.rest) post(changes, each);
      }
    },
    changes: () => [...changes].sort(),
    all: () => [...opening, ...changes].sort(),
  };
}

async function readEntries({ db, dialect }: LedgerContext): Promise<string[]> {
  const rows = await db.selectFrom("book_entries").selectAll().execute();
  return rows
    .map(
      ({ debit, credit, source_id, amount, asset, route_id, pay_to_id }) =>
        `${debit} ${credit} ${source_id} ${dialect.amount.decode(amount)} ${asset} ${route_id} ${pay_to_id}`,
    )
    .sort();
}

/** Sum of an account's debits less its credits, by account and currency. */
async function balances({ db, dialect }: LedgerContext): Promise<Map<string, bigint>> {
  const sums = new Map<string, bigint>();
  const rows = await db.selectFrom("book_entries").selectAll().execute();
  for (const { debit, credit, asset, amount } of rows) {
    if (asset === "") continue;
    add(sums, `${debit} ${asset}`, dialect.amount.decode(amount));
    add(sums, `${credit} ${asset}`, -dialect.amount.decode(amount));
  }
  return withoutZeros(sums);
}

/** The same of the payments. */
async function standing(ledger: LedgerContext): Promise<Map<string, bigint>> {
  const sums = new Map<string, bigint>();
  for (const { debit, credit, rest } of (await movedMoney(ledger)).values()) {
    if (debit === accounts.gas) continue;
    const [, amount = "", asset] = rest.split(" ");
    add(sums, `${debit} ${asset}`, BigInt(amount));
    add(sums, `${credit} ${asset}`, -BigInt(amount));
  }
  return withoutZeros(sums);
}

function add(sums: Map<string, bigint>, key: string, amount: bigint): void {
  sums.set(key, (sums.get(key) ?? 0n) + amount);
}

const withoutZeros = (sums: Map<string, bigint>) =>
  new Map([...sums].filter(([, sum]) => sum !== 0n).sort());

/** As after the migration of a ledger that had these payments before. */
async function beginBooks(ledger: LedgerContext): Promise<void> {
  await ledger.write(async (transaction) => {
    await transaction.deleteFrom("book_entries").execute();
    await transaction.updateTable("transactions").set({ gas_cost: null }).execute();
    await sql`
      update book_progress set posted_to = '', last_id = (
        select coalesce(max(id), '') from (
          select max(id) as id from payments union all select max(id) from archived_payments
        ) as newest
      )
    `.execute(transaction);
  });
}

/** Plays events on a ledger. Those that do not fit its state change nothing. */
function createHistory(
  ledger: LedgerContext,
  lease: Awaited<ReturnType<typeof takeLease>>,
  wait: (ms: number) => void,
) {
  const made: { id: string; wish: ReserveWish; token: string }[] = [];
  const sent: string[] = [];
  let nonce = 0;
  const seconds = () => BigInt(Math.floor(ledger.now() / 1000));
  const blockOf = (pick: number) => ({ number: pick, hash: hash(9_000 + pick) });
  const inclusionIn = (pick: number) => ({
    transactionHash: hash(100_000 + nonce),
    blockNumber: pick,
    blockHash: blockOf(pick).hash,
  });

  async function reserve(wanted: ReserveWish): Promise<string | undefined> {
    const result = await reservePayment(ledger, wanted);
    if (result.outcome !== "reserved") return undefined;
    made.push({ id: result.paymentId, wish: wanted, token: result.token });
    return result.paymentId;
  }

  const play = async ({ kind, pick, value }: { kind: string; pick: number; value: bigint }) => {
    const chosen = made.at(-1 - (pick % Math.max(1, made.length)));
    const ids = chosen ? [chosen.id] : [];
    const block = blockOf(pick % 5);
    const sold = { route: routes[pick % 2] ?? "", resource: "http://a/", wire: "x402v2" as const };
    if (kind === "queue" || kind === "refund") {
      const asset = assets[pick % 2];
      const id = await reserve(
        wish({
          id: authorization(asset ? { asset } : {}),
          value,
          validBefore: seconds() + BigInt(pick) * 3_600n,
          order,
          sold,
        }),
      );
      if (kind === "refund" && id !== undefined) {
        await ledger.write((transaction) =>
          transaction
            .updateTable("payments")
            .set({ refund_of: "sale" })
            .where("id", "=", id)
            .execute(),
        );
      }
      return;
    }
    if (kind === "wait") return wait(pick * 4 * 3_600_000);
    if (kind === "finalise") return finaliseBlocks(ledger, { network, blocks: [block] });
    if (kind === "undo") return undoBlocks(ledger, { network, blocks: [block] });
    if (kind === "undo by the previous release") {
      // It knows no cost of gas.
      return ledger.write((transaction) =>
        transaction
          .updateTable("transactions")
          .set({ state: "open", hash: null, block_number: null, block_hash: null, gas_used: null })
          .where("state", "=", "settled")
          .where("block_hash", "=", block.hash)
          .execute(),
      );
    }
    if (kind === "archive") {
      return archivePayments(ledger, {
        after: "",
        before: ledger.now() - day,
        now: ledger.now(),
        undeliveredBefore: ledger.now() - day,
        limit: 100,
      });
    }
    const id = sent.at(-1 - (pick % Math.max(1, sent.length)));
    if (kind === "settle" && id !== undefined) {
      const settled = { id, inclusion: inclusionIn(pick % 5), gasUsed: 50_000n, gasCost: value };
      // Some nodes return no price.
      return recordOutcomes(ledger, [], pick === 0 ? { ...settled, gasCost: undefined } : settled);
    }
    if (chosen === undefined) return;
    const confirmed = { ids, inclusion: inclusionIn(pick % 5) };
    if (kind === "confirm") return recordOutcomes(ledger, [{ confirmed }]);
    if (kind === "crash") return crashIn(ledger, chosen.id);
    if (kind === "again") return reserve({ ...chosen.wish, value, sold });
    if (kind === "close") return closePayments(ledger, ids);
    if (kind === "release") {
      const { payer } = chosen.wish.id;
      return releasePayment(ledger, { token: chosen.token, payer, countsAgainstPayer: false });
    }
    if (kind === "fail") {
      const reason = "invalid_exact_evm_transaction_failed";
      return recordOutcomes(ledger, [{ failed: [{ ids, reason }] }]);
    }
    if (kind === "submit") {
      nonce += 1;
      const id = `transaction ${nonce}`;
      const outcome = await storeTransaction(ledger, lease, {
        id,
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
      if (outcome === "stored") sent.push(id);
    }
  };
  return { play };
}

/** A database transaction that changes a payment and never commits. */
async function crashIn(ledger: LedgerContext, id: string): Promise<void> {
  const crash = new Error("crash");
  await ledger
    .write(async (transaction) => {
      for (const state of ["confirmed", "queued"] as const) {
        await transaction.updateTable("payments").set({ state }).where("id", "=", id).execute();
      }
      throw crash;
    })
    .catch((error: unknown) => expect(error).toBe(crash));
}
