import { findEntryFault } from "../ledger/entry-fault.ts";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { inSnapshot } from "../ledger/ledger-reads.ts";
import { sortableIdAt } from "../ledger/sortable-id.ts";
import type { BookRange } from "./book-entry.ts";
import { type ComparedRows, readEntriesOf } from "./check-page.ts";

/** Compares the gas of the transactions that the ledger still has with their entries. */
export async function* checkGas(
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
        .selectFrom("transactions")
        .select(["id", "network", "state", "hash", "gas_cost"])
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
      faults: rows.flatMap(({ id, network, state, hash, gas_cost }) => {
        const isPaid = (state === "settled" || state === "final") && gas_cost !== null;
        const value = gas_cost === null ? 0n : amount.decode(gas_cost);
        const source = { isPaid, isRefund: false, isGas: true, value, network } as const;
        const fault = findEntryFault(
          { ...source, asset: "", route_id: null },
          entries.get(id) ?? [],
        );
        const transaction = hash ?? undefined;
        return fault === undefined ? [] : [{ fault, sourceId: id, network, transaction }];
      }),
      transfers: [],
    };
    if (last === undefined || rows.length < limit) return;
    after = last.id;
  }
}
