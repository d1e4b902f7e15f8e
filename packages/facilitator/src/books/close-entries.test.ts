import { sql } from "kysely";
import { beforeEach, describe, expect, it } from "vitest";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { retentionSteps } from "../ledger/maintenance/retention-steps.ts";
import { deliverPayment } from "../ledger/payments/deliver-payments.ts";
import { recordOutcomes } from "../ledger/payments/record-outcomes.ts";
import { reservePayment } from "../ledger/payments/reserve-payments.ts";
import { storeTransaction } from "../ledger/transactions/store-transaction.ts";
import { finaliseBlocks, undoBlocks } from "../ledger/transactions/undo-blocks.ts";
import { ledgerForEachTest } from "../testing/ledger-for-each-test.ts";
import { ledgerLater } from "../testing/ledger-later.ts";
import {
  authorization,
  hash,
  network,
  order,
  takeLease,
  transaction,
  wish,
} from "../testing/ledger-payments.ts";
import { engines } from "../testing/settling-devnet.ts";
import { createBooksReader } from "./books-reader.ts";

const day = 86_400_000;
const always = { from: 0, before: 8_640_000_000_000_000 };
const otherAsset = `0x${"a2".repeat(20)}` as const;

describe.each(engines)("entries of forgotten payments on %s", (engine) => {
  const shared = ledgerForEachTest(engine);
  let ledger: LedgerContext;
  let nonce: number;

  beforeEach(async () => {
    ledger = await shared.join("one");
    shared.wait(Date.now() - ledger.now());
    nonce = 0;
  });

  const blockOf = (number: number) => ({ number, hash: hash(9_000 + number) });

  /** A delivered sale with its gas, in a block of its own; final at the end. */
  async function sell(
    { route, value = 7n }: { route: string; value?: bigint },
    { isReorganised = false }: { isReorganised?: boolean } = {},
  ): Promise<string> {
    nonce += 1;
    const id = authorization(nonce % 2 === 0 ? { asset: otherAsset } : {});
    const sold = { route, resource: "http://a/", wire: "x402v2" as const };
    const validBefore = BigInt(Math.floor(ledger.now() / 1000) + 300);
    const reserved = await reservePayment(ledger, wish({ id, value, validBefore, order, sold }));
    if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
    const { paymentId, token } = reserved;
    const lease = await takeLease(ledger);
    const sent = {
      ...transaction(nonce, [paymentId]),
      id: `${paymentId.slice(0, 12)} of ${nonce}`,
    };
    expect(await storeTransaction(ledger, lease, sent)).toBe("stored");
    await ledger.leases.release(lease);
    const block = blockOf(nonce);
    const settle = () => {
      const inclusion = {
        transactionHash: hash(1_000 + nonce),
        blockNumber: block.number,
        blockHash: block.hash,
      };
      return recordOutcomes(ledger, [{ confirmed: { ids: [paymentId], inclusion } }], {
        ...{ id: sent.id, inclusion, gasUsed: 1n, gasCost: 3n },
      });
    };
    await settle();
    if (isReorganised) {
      await undoBlocks(ledger, { network, blocks: [block] });
      await settle();
    }
    await finaliseBlocks(ledger, { network, blocks: [block] });
    await deliverPayment(ledger, token);
    return paymentId;
  }

  /** A pass of retention after a time. */
  async function retire(at: LedgerContext) {
    const times = {
      keepSignaturesMs: day,
      keepPaymentsMs: 30 * day,
      keepUndeliveredMs: undefined,
    };
    for (const step of retentionSteps(at, times)) while ((await step()) === "again");
  }

  async function readSums(): Promise<unknown[]> {
    const found: unknown[] = [];
    for await (const page of createBooksReader(ledger).sums(always)) found.push(...page);
    return found;
  }

  async function findFaults(): Promise<string[]> {
    const found: string[] = [];
    for await (const { faults } of createBooksReader(ledger).check(always)) {
      found.push(...faults.map(({ fault, sourceId }) => `${fault} ${sourceId}`));
    }
    return found;
  }

  const countEntries = async () => (await shared.read(sql`select id from book_entries`)).length;

  it("become sums with the same digest, and the check names none of them", async () => {
    // More than one step reads.
    const rounds = engine === "sqlite" ? 60 : 8;
    for (let round = 0; round < rounds; round += 1) await sell({ route: `GET /${round % 3}` });
    await sell({ route: "GET /0" }, { isReorganised: true });
    const before = await readSums();
    const digest = await createBooksReader(ledger).digest(always);
    expect(before.length).toBeGreaterThan(6);
    expect(await findFaults()).toEqual([]);

    const later = ledgerLater(ledger, 60 * day);
    await retire(later);
    expect(await shared.read(sql`select id from payments`)).toEqual([]);
    expect(await shared.read(sql`select id from archived_payments`)).toEqual([]);
    // The gas of the relayer's highest nonce, whose transaction is kept.
    expect(await countEntries()).toBe(3);
    expect(await findFaults()).toEqual([]);
    expect(await readSums()).toEqual(before);
    expect(await createBooksReader(ledger).digest(always)).toBe(digest);
    // A second pass adds nothing twice, and forgets no name of a sum.
    await retire(ledgerLater(ledger, 400 * day));
    expect(await readSums()).toEqual(before);
  });

  it("stay with a payment that lacks its entry, so that the check names it", async () => {
    const id = await sell({ route: "GET /0" });
    await sell({ route: "GET /1" });
    await sql`delete from book_entries where source_id = ${id}`.execute(ledger.db);
    await retire(ledgerLater(ledger, 60 * day));
    expect(await shared.read(sql`select id from archived_payments`)).toEqual([{ id }]);
    expect(await findFaults()).toEqual([`missing_entry ${id}`]);
  });

  it("are posted before a payment from before the books is forgotten", async () => {
    const id = await sell({ route: "GET /0" });
    await sql`delete from book_entries`.execute(ledger.db);
    await sql`update book_progress set last_id = ${id}`.execute(ledger.db);
    await retire(ledgerLater(ledger, 60 * day));
    expect(await shared.read(sql`select id from archived_payments`)).toEqual([{ id }]);
  });

  it("entries of a payment that the previous release has deleted become sums as well", async () => {
    const id = await sell({ route: "GET /0" });
    const before = await readSums();
    for (const table of ["payments", "archived_payments"]) {
      await sql`delete from ${sql.table(table)} where id = ${id}`.execute(ledger.db);
    }
    expect(await findFaults()).toEqual([`unknown_source ${id}`]);
    await retire(ledgerLater(ledger, 60 * day));
    expect(await findFaults()).toEqual([]);
    expect(await readSums()).toEqual(before);
  });

  it("are summed by one of two processes that forget them at once", async () => {
    for (let round = 0; round < 12; round += 1) await sell({ route: `GET /${round % 3}` });
    const before = await readSums();
    const other = await shared.join("two");
    await Promise.all([ledger, other].map((each) => retire(ledgerLater(each, 60 * day))));
    expect(await readSums()).toEqual(before);
    expect(await findFaults()).toEqual([]);
  });
});
