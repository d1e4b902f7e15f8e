import { findEntryFault } from "../ledger/entry-fault.ts";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { inSnapshot } from "../ledger/ledger-reads.ts";
import { sortableIdAt } from "../ledger/sortable-id.ts";
import type { BookRange } from "./book-entry.ts";
import { type ComparedRows, readEntriesOf } from "./check-page.ts";

/**
 * Compares refunds with their entries: those that no payment of the engine has made. Any other has
 * the entry of its operation, and none of its own.
 */
export async function* checkRefunds(
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
        .selectFrom("refunds")
        .selectAll()
        .where("id", ">", from)
        .where("id", "<", sortableIdAt(range.before))
        .orderBy("id")
        .limit(limit)
        .execute();
      const ids = page.map(({ id }) => id);
      return { rows: page, entries: await readEntriesOf(snapshot, ids) };
    });
    const compared = rows.map((row) => ({
      row,
      isPaid: (row.state === "confirmed" || row.state === "final") && row.operation_id === null,
    }));
    const last = rows.at(-1);
    yield {
      count: rows.length,
      faults: compared.flatMap(({ row, isPaid }) => {
        const { id, network, asset } = row;
        const source = { isPaid, isRefund: true, value: amount.decode(row.amount), network, asset };
        const fault = findEntryFault({ ...source, route_id: null }, entries.get(id) ?? []);
        const transaction = row.transaction_hash ?? undefined;
        return fault === undefined ? [] : [{ fault, sourceId: id, network, transaction }];
      }),
      transfers: compared.flatMap(({ row, isPaid }) => {
        const { transaction_hash, block_number, float } = row;
        if (!isPaid || transaction_hash === null || block_number === null || !float) return [];
        return [
          {
            sourceId: row.id,
            kind: "refund" as const,
            network: row.network,
            asset: row.asset,
            from: float,
            to: row.payer,
            amount: amount.decode(row.amount),
            transaction: transaction_hash,
            blockNumber: block_number,
            isFinal: row.state === "final",
          },
        ];
      }),
    };
    if (last === undefined || rows.length < limit) return;
    after = last.id;
  }
}
