import { type Address, type Hex, type Network, toLowerHex } from "@coinslot/protocol";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { inSnapshot } from "../ledger/ledger-reads.ts";
import { sortableIdAt, timeOfId } from "../ledger/sortable-id.ts";
import type { BookEntry, BookRange } from "./book-entry.ts";
import { checkSources } from "./check-sources.ts";
import { createNames } from "./name-sold.ts";
import { entryColumns, toEntry } from "./read-entries.ts";
import { type CheckedPayment, readPayments } from "./read-payments.ts";

/** Rows read at once: memory does not grow with the ledger. */
const pageRows = 1_000;

/** A fault of the books, as the ledger alone shows it. */
export interface BookFault {
  fault:
    | "missing_entry" // a confirmed payment has none
    | "extra_entry" // more than one, or one of a payment that is not confirmed
    | "wrong_entry" // of another amount, currency or account
    | "unknown_source"; // of a payment that the ledger does not have
  sourceId: string;
  network: Network;
  transaction: Hex | undefined;
}

/** A confirmed payment or refund: its `Transfer` must be on the chain. */
export interface BookedTransfer {
  sourceId: string;
  kind: "payment" | "refund";
  network: Network;
  asset: Address;
  from: Address;
  to: Address | undefined;
  amount: bigint;
  transaction: Hex;
  blockNumber: number;
  isFinal: boolean;
}

/** One page of a check. */
export interface BookCheckPage {
  /** Number of payments and entries read. */
  count: number;
  /** Unix milliseconds: everything created before it has been read. */
  position: number;
  faults: BookFault[];
  transfers: BookedTransfer[];
}

/**
 * Compares the payments that were created in a time with their entries, page by page, in the order
 * of their creation. Then the entries of that time with their payments. Each page is of one moment,
 * so payments that change meanwhile are no fault.
 *
 * Payments from before the books that are not posted yet are passed over.
 */
export async function* checkEntries(
  reads: LedgerReads,
  range: BookRange,
  limit = pageRows,
): AsyncGenerator<BookCheckPage, void, void> {
  const names = createNames(reads);
  const before = sortableIdAt(range.before);
  let after = sortableIdAt(range.from);
  for (;;) {
    const from = after;
    const { payments, count, last, entries } = await inSnapshot(reads, async (snapshot) => {
      const page = await readPayments(snapshot, { after: from, before, limit });
      return { ...page, entries: await readEntriesOf(snapshot, page.payments) };
    });
    await names.learn(payments.map(({ pay_to_id }) => pay_to_id));
    const confirmed = payments.filter(({ state }) => state === "confirmed");
    yield {
      count,
      position: last === undefined ? range.before : timeOfId(last),
      faults: payments.flatMap((payment) => faultOf(payment, entries.get(payment.id) ?? []) ?? []),
      transfers: confirmed.flatMap((payment) => transferOf(payment, names.nameOf)),
    };
    if (last === undefined || count < limit) break;
    after = last;
  }
  yield* checkSources(reads, range, limit);
}

type Entry = ReturnType<typeof toEntry>;

async function readEntriesOf(
  { db, dialect }: LedgerReads,
  payments: readonly { id: string }[],
): Promise<Map<string, Entry[]>> {
  const found = new Map<string, Entry[]>();
  if (payments.length === 0) return found;
  const rows = await db
    .selectFrom("book_entries")
    .select(entryColumns)
    .where("source_id", "in", dialect.among(payments.map(({ id }) => id)))
    .orderBy("id")
    .execute();
  for (const row of rows) {
    const entry = toEntry(row, { dialect });
    found.set(entry.sourceId, [...(found.get(entry.sourceId) ?? []), entry]);
  }
  return found;
}

/** Each reversal ends an equal entry; a confirmed payment has one left, and no other has any. */
function faultOf(payment: CheckedPayment, entries: readonly Entry[]): BookFault | undefined {
  const { id: sourceId, network, transaction } = payment;
  const describe = (fault: BookFault["fault"]) => ({ fault, sourceId, network, transaction });
  const left: Entry[] = [];
  // A reversal may be posted before the entry from before the books that it takes back.
  const inOrder = [...entries].sort((a, b) => Number(a.isReversal) - Number(b.isReversal));
  for (const entry of inOrder) {
    const ended = entry.isReversal ? left.findIndex((other) => isSame(other, entry)) : -1;
    if (ended >= 0) left.splice(ended, 1);
    else if (entry.isReversal) return describe("wrong_entry");
    else left.push(entry);
  }
  const isConfirmed = payment.state === "confirmed";
  const [entry] = left;
  if (!isConfirmed) return entry && describe("extra_entry");
  if (entry === undefined) return describe("missing_entry");
  if (left.length > 1) return describe("extra_entry");
  const kind = payment.refund_of === null ? "payment" : "refund";
  const due = { kind, amount: payment.value, network, asset: payment.asset } as const;
  return isSame(entry, due) ? undefined : describe("wrong_entry");
}

function isSame(
  one: Pick<Entry, "kind" | "amount" | "network" | "asset">,
  other: Pick<BookEntry, "kind" | "amount" | "network" | "asset">,
): boolean {
  const keys = ["kind", "amount", "network", "asset"] as const;
  return keys.every((key) => one[key] === other[key]);
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
