import type { PaymentRow, Result } from "../api/operations.ts";
import { useOperation } from "../api/use-operation.ts";
import { Copyable, Money, networkName, State, Time } from "../parts/format-parts.tsx";
import { Page } from "../parts/page.tsx";
import { Empty, View } from "../parts/states.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Link, type Place, usePlace, withQuery } from "../router.tsx";
import { ExportPayments } from "./export-payments.tsx";
import { type Filters, PaymentFilters, readFilters } from "./payment-filters.tsx";

const pageSize = 50;

const columns: readonly Column<PaymentRow>[] = [
  { title: "Amount", isNumeric: true, cell: (row) => <Money money={row} /> },
  {
    title: "State",
    cell: (row) => <State state={row.refundedAt === null ? row.state : "refund begun"} />,
  },
  {
    title: "Sold",
    cell: (row) => (
      <Link to={`/payments/${row.id}`} class="lines" title={row.resource ?? row.route ?? row.id}>
        <bdi>{row.route ?? row.resource ?? row.id}</bdi>
      </Link>
    ),
  },
  { title: "Buyer", isExtra: true, cell: (row) => <Copyable text={row.payer} what="address" /> },
  { title: "Network", isExtra: true, cell: (row) => networkName(row.network) },
  { title: "Created", isExtra: true, cell: (row) => <Time at={row.createdAt} /> },
];

/** All payments, the newest first: search and filters are in the address. */
export function Payments() {
  const place = usePlace();
  const filters = readFilters(place.query);
  const cursor = place.query.get("cursor") ?? undefined;
  const loaded = useOperation("payments.list", {
    ...filters,
    ...(cursor === undefined ? {} : { cursor }),
    limit: pageSize,
  });
  return (
    <Page title="Payments" actions={<ExportPayments filters={filters} />}>
      <PaymentFilters place={place} filters={filters} />
      <View of={loaded} lines={10}>
        {(list) => <List list={list} place={place} filters={filters} />}
      </View>
    </Page>
  );
}

interface ListProps {
  list: Result<"payments.list">;
  place: Place;
  filters: Filters;
}

function List({ list: { payments, matched, nextCursor }, place, filters }: ListProps) {
  return (
    <>
      {matched !== null && <Meaning matched={matched} place={place} />}
      {payments.length === 0 ? (
        <Nothing filters={filters} hasMore={nextCursor !== null} />
      ) : (
        <Table caption="Payments" columns={columns} rows={payments} keyOf={({ id }) => id} />
      )}
      <nav class="pages" aria-label="Pages of payments">
        {place.query.has("cursor") && (
          <Link to={withQuery(place, { cursor: undefined })}>Newest</Link>
        )}
        {nextCursor !== null && <Link to={withQuery(place, { cursor: nextCursor })}>Older</Link>}
      </nav>
    </>
  );
}

/** The ledger's understanding of the search text. */
function Meaning({
  matched,
  place,
}: {
  matched: { kind: string; routes: string[] };
  place: Place;
}) {
  if (matched.kind !== "none") return <p class="soft">Found by its {matched.kind}.</p>;
  if (matched.routes.length === 0) return null;
  return (
    <p>
      Several routes have this in their names:{" "}
      {matched.routes.map((route) => (
        <Link
          key={route}
          class="pill cut"
          title={route}
          to={withQuery(place, { search: undefined, route })}
        >
          <bdi>{route}</bdi>
        </Link>
      ))}
    </p>
  );
}

function Nothing({ filters, hasMore }: { filters: Filters; hasMore: boolean }) {
  if (hasMore) {
    return <Empty title="None on this page.">Older payments may fit: go on with Older.</Empty>;
  }
  if (Object.keys(filters).length > 0) {
    return (
      <Empty title="No payment fits.">
        {channelIdForm.test(filters.search ?? "") && <Channel id={filters.search ?? ""} />}
        <Link to="/payments">Show all payments</Link>
      </Empty>
    );
  }
  return (
    <Empty title="No payment yet.">
      Call a paid route: <code>npx coinslot pay URL</code>
    </Empty>
  );
}

const channelIdForm = /^0x[0-9a-f]{64}$/i;

/** The channel of a searched id, where the ledger has it. */
function Channel({ id }: { id: string }) {
  const { data } = useOperation("channels.get", { id });
  if (data === undefined) return null;
  const { id: found } = data.channel;
  return (
    <>
      It is the id of a channel: <Link to={`/channels/${found}`}>{found.slice(0, 12)}</Link>.{" "}
    </>
  );
}
