import { sql } from "kysely";
import { closePeriod } from "../books/close-period.ts";
import { postEarlier } from "../books/post-earlier.ts";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { archivePayments } from "../ledger/maintenance/archive-payments.ts";
import { retentionSteps } from "../ledger/maintenance/retention-steps.ts";
import { deliverPayment } from "../ledger/payments/deliver-payments.ts";
import { recordOutcomes } from "../ledger/payments/record-outcomes.ts";
import { finaliseBlocks, undoBlocks } from "../ledger/transactions/undo-blocks.ts";
import { undoTransaction } from "../ledger/transactions/undo-transaction.ts";
import { OperationRefusedError } from "../operators/operation-refused-error.ts";
import type { BookEvent } from "./book-events.ts";
import {
  blockOf,
  confirm,
  type Histories,
  idsOf,
  inclusionIn,
  lose,
  relayer,
} from "./book-history.ts";
import { ledgerLater } from "./ledger-later.ts";
import { network } from "./ledger-payments.ts";
import { undoDeeply } from "./undo-deeply.ts";

const day = 86_400_000;

/** Plays an event of the chain or of the ledger, which meets all histories. */
export async function playShared(
  histories: Histories,
  event: BookEvent,
  wait: (ms: number) => void,
): Promise<unknown> {
  const { ledger, all } = histories;
  const { kind, pick } = event;
  switch (kind) {
    case "wait":
      return wait(pick * 4 * 3_600_000);
    case "archive":
      return archivePayments(ledger, {
        ...{ after: "", before: ledger.now() - day, now: ledger.now() },
        ...{ limit: 100 * all.length, undeliveredBefore: ledger.now() - day },
      });
    case "retire":
      return retire(histories, pick);
    case "forget by the previous release":
      return forget(histories);
    case "close the books":
      return closeBooks(ledger);
    case "post earlier":
      return postEarlier(ledger, 2 * all.length);
    case "begin":
      return beginBooks(ledger);
  }
  return playOnChain(histories, event);
}

/** Meets the payments of all histories in its blocks, or every third transaction, or history. */
async function playOnChain(
  histories: Histories,
  { kind, pick, value }: BookEvent,
): Promise<unknown> {
  const { ledger, other, all, sent } = histories;
  const block = blockOf(pick % 5);
  const isChosen = (_: unknown, index: number) => index % 3 === pick % 3;
  const some = () => idsOf(all.filter(isChosen));
  switch (kind) {
    case "settle":
    case "race": {
      const by = kind === "race" ? [ledger, other] : [ledger];
      const inclusion = inclusionIn(histories, pick);
      // Some nodes return no price.
      const gasCost = pick === 0 ? undefined : value;
      const chosen = sent.filter(isChosen);
      return Promise.all(
        chosen.flatMap(({ id }) =>
          by.map((each) => recordOutcomes(each, [], { id, inclusion, gasUsed: 50_000n, gasCost })),
        ),
      );
    }
    case "confirm some":
      return confirm(histories, [ledger], { ids: some(), pick });
    case "lose some":
      return lose(histories, some());
    case "finalise":
      return finaliseBlocks(ledger, { network, blocks: [block] });
    case "undo":
      return undoBlocks(ledger, { network, blocks: [block] });
    case "undo by the previous release":
      // It knows no cost of gas.
      return sql`
        update transactions set state = 'open', hash = null, block_number = null,
          block_hash = null, gas_used = null
        where state = 'settled' and block_hash = ${block.hash}
      `.execute(ledger.db);
    case "undo transactions":
      return Promise.all(
        sent
          .filter(isChosen)
          .map(({ nonce }) =>
            undoTransaction(ledger, { network, relayer, nonce, unusedAtBlock: 5, highest: 5 }),
          ),
      );
    case "undo deeply":
      return undoDeeply([ledger, other], {
        ...{ network, blocks: [block, blockOf((pick + 1) % 5)], unusedAtBlock: pick },
        isCut: pick % 3 === 0,
      });
  }
}

/** A pass of retention, days later; most often after all has been delivered, and is final. */
async function retire({ ledger, all }: Histories, pick: number): Promise<void> {
  if (pick % 4 > 0) {
    await finaliseBlocks(ledger, { network, blocks: [0, 1, 2, 3, 4].map(blockOf) });
    const tokens = all.flatMap(({ made }) => made.map(({ token }) => token));
    await Promise.all(tokens.map((token) => deliverPayment(ledger, token)));
  }
  const later = ledgerLater(ledger, (pick + 1) * 5 * day);
  const times = { keepSignaturesMs: day, keepPaymentsMs: 2 * day, keepUndeliveredMs: day };
  for (const step of retentionSteps(later, times)) while ((await step()) === "again");
}

/** The previous release deletes payments, and leaves their entries. */
async function forget({ ledger, all }: Histories): Promise<void> {
  await sql`
    delete from archived_payments where id in (
      select id from archived_payments
      where id <= (select posted_to from book_progress)
        or id > (select last_id from book_progress)
      order by id limit ${sql.lit(all.length)}
    )
  `.execute(ledger.db);
}

async function closeBooks(ledger: LedgerContext): Promise<void> {
  const { last } = await ledger.db
    .selectFrom("book_entries")
    .select((row) => row.fn.max("posted_at").as("last"))
    .executeTakeFirstOrThrow();
  if (last === null) return;
  await closePeriod(ledger, { until: Number(last) }).catch((error: unknown) => {
    if (!(error instanceof OperationRefusedError)) throw error;
  });
}

/** As after the migration of a ledger that had these payments before. */
async function beginBooks(ledger: LedgerContext): Promise<void> {
  await ledger.write(async (transaction) => {
    for (const table of ["book_entries", "book_sums", "book_periods", "deep_reversals"] as const) {
      await transaction.deleteFrom(table).execute();
    }
    // The books are as old as refunds.
    await transaction.deleteFrom("refunds").execute();
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
