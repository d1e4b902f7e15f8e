import { type Hex, toLowerHex } from "@coinslot/protocol";
import { findEntryFault } from "../ledger/entry-fault.ts";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { inSnapshot } from "../ledger/ledger-reads.ts";
import { sortableIdAt } from "../ledger/sortable-id.ts";
import type { BookRange } from "./book-entry.ts";
import { checkChannels } from "./check-channels.ts";
import { checkGas } from "./check-gas.ts";
import {
  type BookCheckPage,
  type BookedTransfer,
  type BookFault,
  type ComparedRows,
  type EntriesBySource,
  readEntriesOf,
} from "./check-page.ts";
import { checkPayouts } from "./check-payouts.ts";
import { checkRefunds } from "./check-refunds.ts";
import { checkSources } from "./check-sources.ts";
import { findWindowEnd } from "./check-window.ts";
import { createNames } from "./name-sold.ts";
import { type CheckedPayment, readPayments } from "./read-payments.ts";

/** Rows read at once: memory does not grow with the ledger. */
const pageRows = 1_000;

/** Rows of one kind that are compared before those of the next kind. */
const windowRows = 10_000;

/**
 * Compares the payments of a time with their entries, page by page, in the order of their creation.
 * So it does with refunds that another transaction has made, and with the gas of transactions. Then
 * the entries of that time with their sources. Each page is of one moment, so payments that change
 * meanwhile are no fault.
 *
 * It takes one part of the time after the other: a check that breaks off goes on at the `position`
 * of its last page, and leaves nothing out.
 *
 * Payments from before the books that are not posted yet are passed over. Channels have no time:
 * the last part has all of them.
 */
export async function* checkEntries(
  reads: LedgerReads,
  range: BookRange,
  limit = pageRows,
): AsyncGenerator<BookCheckPage, void, void> {
  let { from } = range;
  while (from < range.before) {
    const before = await findWindowEnd(reads, { from, before: range.before }, windowRows);
    for await (const page of checkWindow(reads, { from, before }, limit)) {
      yield { ...page, position: from };
    }
    if (before >= range.before) {
      for await (const page of checkChannels(reads, limit)) yield { ...page, position: from };
    }
    from = before;
    yield { count: 0, position: from, faults: [], transfers: [] };
  }
}

async function* checkWindow(
  reads: LedgerReads,
  range: BookRange,
  limit: number,
): AsyncGenerator<ComparedRows, void, void> {
  const names = createNames(reads);
  const before = sortableIdAt(range.before);
  let after = sortableIdAt(range.from);
  for (;;) {
    const from = after;
    const { payments, count, last, entries } = await inSnapshot(reads, async (snapshot) => {
      const page = await readPayments(snapshot, { after: from, before, limit });
      const ids = page.payments.map(({ id }) => id);
      return { ...page, entries: await readEntriesOf(snapshot, ids) };
    });
    await names.learn(payments.map(({ pay_to_id }) => pay_to_id));
    const confirmed = payments.filter(({ state }) => state === "confirmed");
    yield {
      count,
      faults: payments.flatMap((payment) => faultOf(payment, entries)),
      transfers: confirmed.flatMap((payment) => transferOf(payment, names.nameOf)),
    };
    if (last === undefined || count < limit) break;
    after = last;
  }
  yield* checkRefunds(reads, range, limit);
  yield* checkPayouts(reads, range, limit);
  yield* checkGas(reads, range, limit);
  yield* checkSources(reads, range, limit);
}

function faultOf(payment: CheckedPayment, entries: EntriesBySource): BookFault[] {
  const { id: sourceId, network, asset, value, transaction, route_id } = payment;
  const isPaid = payment.state === "confirmed";
  const isRefund = payment.refund_of !== null;
  const { isLost } = payment;
  const source = { isPaid, isLost, isRefund, value, network, asset, route_id };
  const fault = findEntryFault(source, entries.get(sourceId) ?? []);
  return fault === undefined ? [] : [{ fault, sourceId, network, transaction }];
}

function transferOf(
  payment: CheckedPayment,
  nameOf: (id: number | null) => string | undefined,
): BookedTransfer[] {
  const { transaction, block_number } = payment;
  if (transaction === undefined || block_number === null) return [];
  const to = nameOf(payment.pay_to_id) ?? payment.pay_to ?? undefined;
  return [
    {
      sourceId: payment.id,
      kind: payment.refund_of === null ? "payment" : "refund",
      network: payment.network,
      asset: payment.asset,
      from: payment.payer,
      to: to === undefined ? undefined : toLowerHex(to as Hex),
      amount: payment.value,
      transaction,
      blockNumber: block_number,
      isFinal: payment.final_at !== null,
    },
  ];
}
