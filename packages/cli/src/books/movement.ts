import type { BookEntry, BookRange, BookSum, BooksReader } from "@coinslot/facilitator";

/** A row of an export: an entry, or the sum of several. */
export interface Movement
  extends Pick<BookEntry, "kind" | "isReversal" | "debit" | "credit" | "amount"> {
  /** Unix milliseconds; `undefined` for a sum over days. */
  time: number | undefined;
  count: number;
  /** `undefined` for a sum over networks. */
  network: BookEntry["network"] | undefined;
  /** As in the books; a sum over networks has it of one of them. */
  currency: { network: BookEntry["network"]; asset: BookEntry["asset"] };
  route: string | undefined;
  /** Of one entry. */
  entry?: BookEntry;
}

/** Divisions of an export. Currencies are always apart. */
export const exportGroups = ["day", "route", "network", "token"] as const;
export type ExportGroup = (typeof exportGroups)[number];

const dayMs = 86_400_000;

/**
 * The rows of an export, page by page: every entry, or sums. Of forgotten payments, and of charges
 * of channels, the sums by day come first in place of their entries. By day they are in the order
 * of the days, and memory holds one day. Otherwise it holds one row per group.
 */
export async function* readMovements(
  books: BooksReader,
  range: BookRange,
  { groups, codeOf }: { groups: readonly ExportGroup[]; codeOf: (sum: BookSum) => string },
): AsyncGenerator<Movement[], void, void> {
  if (groups.length === 0) {
    for await (const page of books.closedSums(range)) yield page.map(toClosed);
    for await (const page of books.charges(range)) yield page.map(toClosed);
    for await (const page of books.entries(range)) yield page.map(toMovement);
    return;
  }
  const isByDay = groups.includes("day");
  let sums = new Map<string, Movement>();
  for await (const page of books.sums(range)) {
    for (const sum of page) addSum(sums, sum, { groups, code: codeOf(sum) });
    if (!isByDay) continue;
    yield [...sums.values()];
    sums = new Map();
  }
  if (!isByDay) yield [...sums.values()];
}

function toMovement(entry: BookEntry): Movement {
  const { kind, isReversal, debit, credit, amount, network, asset, route } = entry;
  return {
    kind,
    isReversal,
    debit,
    credit,
    amount,
    network,
    currency: { network, asset },
    route,
    time: entry.postedAt,
    count: 1,
    entry,
  };
}

function toClosed(sum: BookSum): Movement {
  const { day, kind, isReversal, debit, credit, amount, count, network, asset, route } = sum;
  return {
    ...{ kind, isReversal, debit, credit, amount, count, network, route },
    currency: { network, asset },
    time: day * dayMs,
  };
}

function addSum(
  sums: Map<string, Movement>,
  sum: BookSum,
  { groups, code }: { groups: readonly ExportGroup[]; code: string },
): void {
  const { kind, isReversal, debit, credit, amount, count, network, asset } = sum;
  const time = groups.includes("day") ? sum.day * dayMs : undefined;
  const route = groups.includes("route") ? sum.route : undefined;
  const of = groups.includes("network") ? network : undefined;
  const key = JSON.stringify([of, code, route, debit, credit]);
  const known = sums.get(key);
  sums.set(key, {
    ...{ kind, isReversal, debit, credit, time, route, network: of },
    currency: known?.currency ?? { network, asset },
    amount: amount + (known?.amount ?? 0n),
    count: count + (known?.count ?? 0),
  });
}
