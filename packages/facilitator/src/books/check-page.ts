import type { Address, Hex, Network } from "@coinslot/protocol";
import type { ComparedEntry, EntryFault } from "../ledger/entry-fault.ts";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { entryColumns } from "./read-entries.ts";

/** A fault of the books, as the ledger alone shows it. */
export interface BookFault {
  /**
   * `unknown_source`: an entry of a payment that the ledger does not have. `wrong_balance`: the
   * entries of a channel do not add up to its row.
   */
  fault: EntryFault | "unknown_source" | "wrong_balance";
  sourceId: string;
  network: Network;
  transaction: Hex | undefined;
}

/** A confirmed payment, refund or payout of an escrow: its `Transfer` must be on the chain. */
export interface BookedTransfer {
  sourceId: string;
  kind: "payment" | "refund" | "payout";
  network: Network;
  asset: Address;
  from: Address;
  to: Address | undefined;
  amount: bigint;
  transaction: Hex;
  blockNumber: number;
  isFinal: boolean;
}

/** Rows of one kind, compared. */
export interface ComparedRows {
  /** Number of payments and entries read. */
  count: number;
  faults: BookFault[];
  transfers: BookedTransfer[];
}

/** One page of a check. */
export interface BookCheckPage extends ComparedRows {
  /** Unix milliseconds: rows of every kind that were created before it have been compared. */
  position: number;
}

/** Entries by their source. */
export type EntriesBySource = Map<string, ComparedEntry[]>;

/** The entries of some sources, by their ids. */
export async function readEntriesOf(
  { db, dialect }: LedgerReads,
  ids: readonly string[],
): Promise<EntriesBySource> {
  const found: EntriesBySource = new Map();
  if (ids.length === 0) return found;
  const rows = await db
    .selectFrom("book_entries")
    .select(entryColumns)
    .where("source_id", "in", dialect.among(ids))
    .orderBy("id")
    .execute();
  for (const row of rows) {
    const entry = { ...row, amount: dialect.amount.decode(row.amount) };
    const known = found.get(row.source_id);
    if (known) known.push(entry);
    else found.set(row.source_id, [entry]);
  }
  return found;
}
