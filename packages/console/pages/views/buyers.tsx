import { formatCount, shorten } from "@coinslot/pages/format";
import type { Result } from "../api/operations.ts";
import { useOperation } from "../api/use-operation.ts";
import { Monies, Time } from "../parts/format-parts.tsx";
import { Page } from "../parts/page.tsx";
import { Empty, View } from "../parts/states.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Link, usePlace, withQuery } from "../router.tsx";

type Row = Result<"buyers.list">["buyers"][number];

const columns: readonly Column<Row>[] = [
  {
    title: "Buyer",
    cell: ({ address }) => (
      <Link to={`/payments?${new URLSearchParams({ search: address })}`} title={address}>
        <code>{shorten(address)}</code>
      </Link>
    ),
  },
  {
    title: "Sales",
    isNumeric: true,
    cell: ({ sales, isPartial }) => `${formatCount(sales)}${isPartial ? "+" : ""}`,
  },
  { title: "Paid", isNumeric: true, cell: ({ total }) => <Monies monies={total} /> },
  {
    title: "Refunded",
    isNumeric: true,
    isExtra: true,
    cell: ({ refunded }) => <Monies monies={refunded} />,
  },
  {
    title: "Kind",
    isExtra: true,
    cell: ({ hasCode, refusedUntil }) =>
      refusedUntil !== null ? (
        <span class="state bad">
          refused until <Time at={refusedUntil} />
        </span>
      ) : hasCode ? (
        "contract"
      ) : (
        "account"
      ),
  },
  { title: "Last payment", cell: ({ lastPaymentAt }) => <Time at={lastPaymentAt} /> },
];

/** Buyers: those of the newest payments, or all by address. */
export function Buyers() {
  const place = usePlace();
  const isAll = place.query.get("order") === "address";
  const cursor = place.query.get("cursor") ?? undefined;
  const loaded = useOperation("buyers.list", {
    order: isAll ? "address" : "recent",
    ...(cursor === undefined ? {} : { cursor }),
  });
  return (
    <Page
      title="Buyers"
      actions={
        isAll ? (
          <Link to="/buyers">Recent ones</Link>
        ) : (
          <Link to="/buyers?order=address">All by address</Link>
        )
      }
    >
      <View of={loaded}>
        {({ buyers, nextCursor }) => (
          <>
            {buyers.length === 0 ? (
              <Empty title="No buyer yet.">A buyer is an address that has paid.</Empty>
            ) : (
              <Table
                caption="Buyers"
                columns={columns}
                rows={buyers}
                keyOf={({ address }) => address}
              />
            )}
            <nav class="pages" aria-label="Pages of buyers">
              {nextCursor !== null && (
                <Link to={withQuery(place, { order: "address", cursor: nextCursor })}>Next</Link>
              )}
            </nav>
          </>
        )}
      </View>
    </Page>
  );
}
