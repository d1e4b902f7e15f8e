import type { Address, Network, WireName } from "@coinslot/protocol";
import { toLowerHex } from "@coinslot/protocol";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { inSnapshot } from "../ledger/ledger-reads.ts";
import type { LedgerPayment } from "../ledger/payments/ledger-payment.ts";
import {
  getAll,
  listPayments,
  type PaymentFilter,
  scanPayments,
} from "../ledger/queries/list-payments.ts";
import { findByText, type TextMatch } from "./find-by-text.ts";
import { type PaymentRecord, toRecords } from "./payment-record.ts";

/** A search of payments: a text, and filters that hold beside it. */
export interface PaymentSearch extends Omit<PaymentFilter, "limit"> {
  search?: string | undefined;
  wire?: WireName | undefined;
  limit: number;
}

/** One page, the newest first. */
export interface FoundPayments {
  match: TextMatch | undefined;
  payments: PaymentRecord[];
  /** Also after a page that is not full: rows without an index are looked through in parts. */
  nextCursor: string | undefined;
}

/** Rows that one page looks through for a wire or a recipient, which have no index. */
const maxExamined = 2_000;
/**
 * Each step looks through this many times the rows of the step before: most pages need the first.
 */
const growth = 10;

/**
 * Finds payments by a text and by filters. A text without a meaning finds none.
 *
 * An id, a nonce and a hash name few payments: the filters are applied to these. An address and a
 * route are filters of the list. A wire and a recipient are found among the rows of the list, a
 * bounded number for each page.
 */
export function searchPayments(
  reads: LedgerReads,
  { search, wire, ...filter }: PaymentSearch,
): Promise<FoundPayments> {
  return inSnapshot(reads, async (snapshot) => {
    const text = search?.trim();
    const match = text ? await findByText(snapshot, text) : undefined;
    const found = await findMatching(snapshot, match, { wire, ...filter });
    return { match, ...found };
  });
}

type Found = Omit<FoundPayments, "match">;

async function findMatching(
  reads: LedgerReads,
  match: TextMatch | undefined,
  search: Omit<PaymentSearch, "search">,
): Promise<Found> {
  const nothing: Found = { payments: [], nextCursor: undefined };
  if (match === undefined) return examine(reads, search, {});
  switch (match.kind) {
    case "none":
      return nothing;
    case "payer":
      if (search.payer !== undefined && toLowerHex(search.payer) !== match.address) return nothing;
      return examine(reads, { ...search, payer: match.address }, {});
    case "token":
      if (search.asset !== undefined && toLowerHex(search.asset) !== match.address) return nothing;
      return examine(reads, { ...search, asset: match.address }, {});
    case "route":
      if (search.route !== undefined && search.route !== match.route) return nothing;
      return examine(reads, { ...search, route: match.route }, {});
    case "recipient":
      return examine(reads, search, { payToId: match.nameId });
    default:
      return choose(reads, match.ids, search);
  }
}

/**
 * Goes along the list until enough are found or examined. Of a payment that does not fit, its id is
 * read, and the compared members.
 */
async function examine(
  reads: LedgerReads,
  { wire, limit, ...filter }: Omit<PaymentSearch, "search">,
  { payToId }: { payToId?: number },
): Promise<Found> {
  if (wire === undefined && payToId === undefined) {
    const page = await listPayments(reads, { ...filter, limit });
    return { payments: await toRecords(reads, page.payments), nextCursor: page.nextCursor };
  }
  const ids: string[] = [];
  let { cursor } = filter;
  let examined = 0;
  for (let step = limit + 1; ids.length <= limit && examined < maxExamined; step *= growth) {
    const wanted = Math.min(step, maxExamined - examined);
    const rows = await scanPayments(reads, { ...filter, cursor }, wanted);
    const fitting = rows.filter(
      (row) => row.wire === (wire ?? row.wire) && row.pay_to_id === (payToId ?? row.pay_to_id),
    );
    ids.push(...fitting.map(({ id }) => id));
    examined += wanted;
    cursor = rows.length < wanted ? undefined : rows.at(-1)?.id;
    if (cursor === undefined) break;
  }
  const page = ids.slice(0, limit);
  const payments = await toRecords(reads, await getAll(reads, page));
  return { payments, nextCursor: ids.length > limit ? page.at(-1) : cursor };
}

/** Applies filters to payments that are known by their ids. */
async function choose(
  reads: LedgerReads,
  ids: readonly string[],
  { wire, limit, cursor, ...filter }: Omit<PaymentSearch, "search">,
): Promise<Found> {
  const known = await getAll(reads, ids);
  const payments = known.filter((payment) => isWanted(payment, { cursor, ...filter }));
  const records = (await toRecords(reads, payments)).filter(
    (record) =>
      record.wire === (wire ?? record.wire) && record.route === (filter.route ?? record.route),
  );
  const page = records.slice(0, limit);
  return { payments: page, nextCursor: records.length > limit ? page.at(-1)?.id : undefined };
}

function isWanted(
  { id, state, authorization, createdAt }: LedgerPayment,
  filter: Omit<PaymentFilter, "limit">,
): boolean {
  const { network, asset, payer } = authorization;
  const wanted: { network: Network; asset: Address; payer: Address } = {
    network: filter.network ?? network,
    asset: toLowerHex(filter.asset ?? asset),
    payer: toLowerHex(filter.payer ?? payer),
  };
  return (
    (filter.cursor === undefined || id < filter.cursor) &&
    state === (filter.state ?? state) &&
    network === wanted.network &&
    asset === wanted.asset &&
    payer === wanted.payer &&
    createdAt >= (filter.createdFrom ?? 0) &&
    createdAt < (filter.createdBefore ?? Number.POSITIVE_INFINITY)
  );
}
