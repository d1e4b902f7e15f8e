import { findEntryFault } from "../ledger/entry-fault.ts";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { inSnapshot } from "../ledger/ledger-reads.ts";
import { sortableIdAt } from "../ledger/sortable-id.ts";
import type { BookRange } from "./book-entry.ts";
import { type ComparedRows, readEntriesOf } from "./check-page.ts";

/** Compares the payouts of escrow contracts with their entries. Each is final. */
export async function* checkPayouts(
  reads: LedgerReads,
  range: BookRange,
  limit: number,
): AsyncGenerator<ComparedRows, void, void> {
  const { amount } = reads.dialect;
  let after = sortableIdAt(range.from);
  for (;;) {
    const from = after;
    const { rows, entries } = await inSnapshot(reads, async (snapshot) => {
      const page = await snapshot.db
        .selectFrom("channel_payouts")
        .selectAll()
        .where("id", ">", from)
        .where("id", "<", sortableIdAt(range.before))
        .orderBy("id")
        .limit(limit)
        .execute();
      const ids = page.map(({ id }) => id);
      return { rows: page, entries: await readEntriesOf(snapshot, ids) };
    });
    const last = rows.at(-1);
    yield {
      count: rows.length,
      faults: rows.flatMap(
        ({ id, network, token: asset, transaction_hash: transaction, ...row }) => {
          const source = { isPaid: true, isRefund: false, isPayout: true, network, asset };
          const value = amount.decode(row.amount);
          const due = { ...source, value, route_id: null };
          const fault = findEntryFault(due, entries.get(id) ?? []);
          return fault === undefined ? [] : [{ fault, sourceId: id, network, transaction }];
        },
      ),
      transfers: rows.map((row) => ({
        sourceId: row.id,
        kind: "payout" as const,
        network: row.network,
        asset: row.token,
        from: row.contract,
        to: row.receiver,
        amount: amount.decode(row.amount),
        transaction: row.transaction_hash,
        blockNumber: row.block_number,
        isFinal: true,
      })),
    };
    if (last === undefined || rows.length < limit) return;
    after = last.id;
  }
}
