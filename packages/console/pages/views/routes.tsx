import { formatCount } from "@coinslot/pages/format";
import type { Result } from "../api/operations.ts";
import { useOperation } from "../api/use-operation.ts";
import { Monies, Time } from "../parts/format-parts.tsx";
import { Page } from "../parts/page.tsx";
import { Empty, View } from "../parts/states.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { go, Link, usePlace, withQuery } from "../router.tsx";
import { Refusals } from "./refusals.tsx";

type Row = Result<"routes.list">["routes"][number];

const columns: readonly Column<Row>[] = [
  {
    title: "Route",
    cell: ({ route }) =>
      route === null ? (
        <span class="soft">Without a name</span>
      ) : (
        <Link class="lines" title={route} to={`/payments?${new URLSearchParams({ route })}`}>
          <bdi>{route}</bdi>
        </Link>
      ),
  },
  { title: "Sales", isNumeric: true, cell: ({ sales }) => formatCount(sales) },
  { title: "Income", isNumeric: true, cell: ({ income }) => <Monies monies={income} /> },
  { title: "Offers", isNumeric: true, isExtra: true, cell: ({ offers }) => formatCount(offers) },
  {
    title: "Refused",
    isNumeric: true,
    isExtra: true,
    cell: ({ refusals }) => formatCount(refusals),
  },
  { title: "Open", isNumeric: true, isExtra: true, cell: ({ open }) => formatCount(open) },
  {
    title: "Failed",
    isNumeric: true,
    isExtra: true,
    cell: ({ failed, expired }) => formatCount(failed + expired),
  },
  {
    title: "Released",
    isNumeric: true,
    isExtra: true,
    cell: ({ released }) => formatCount(released),
  },
  {
    title: "Last sale",
    isExtra: true,
    cell: ({ lastSaleAt, lastSaleDay }) =>
      lastSaleAt === null ? (lastSaleDay ?? "–") : <Time at={lastSaleAt} />,
  },
];

/** Of routes that sell by channels. */
const charges: readonly Column<Row>[] = [
  {
    title: "Charges",
    isNumeric: true,
    isExtra: true,
    cell: (row) => formatCount(row.charges ?? 0),
  },
  { title: "Charged", isNumeric: true, cell: ({ charged = [] }) => <Monies monies={charged} /> },
];

/** Beside charges there is no room for all columns. */
const isNarrow = ({ title }: Column<Row>) => title !== "Released";

const spans = { "": "All time", "1": "Today", "7": "7 days", "30": "30 days" } as const;

/**
 * Offers, sales and income of each route, and the requests that bought nothing by their reasons.
 */
export function Routes() {
  const place = usePlace();
  const asked = place.query.get("days") ?? "";
  const days = Object.hasOwn(spans, asked) ? Number(asked) : 0;
  const from = days > 0 ? daysAgo(days - 1) : undefined;
  const loaded = useOperation("routes.list", from === undefined ? {} : { from });
  return (
    <Page
      title="Routes"
      actions={
        <label for="days">
          <span class="aside">Time</span>
          <select
            id="days"
            value={place.query.get("days") ?? ""}
            onChange={({ currentTarget }) => go(withQuery(place, { days: currentTarget.value }))}
          >
            {Object.entries(spans).map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </label>
      }
    >
      <View of={loaded}>
        {({ routes }) =>
          routes.length === 0 ? (
            <Empty title="No route was asked for.">
              Routes are listed with their first offer or sale.
            </Empty>
          ) : (
            <Table
              caption="Routes"
              columns={
                routes.some((route) => route.charged?.length)
                  ? [...columns.slice(0, 3), ...charges, ...columns.slice(3).filter(isNarrow)]
                  : columns
              }
              rows={routes}
              keyOf={({ route }) => route ?? ""}
            />
          )
        }
      </View>
      <Refusals {...(from === undefined ? {} : { from: from.slice(0, 10) })} />
    </Page>
  );
}

/** Midnight in UTC, so that the ledger's sums by day answer. */
function daysAgo(days: number): string {
  const midnight = new Date();
  midnight.setUTCHours(0, 0, 0, 0);
  return new Date(midnight.getTime() - days * 86_400_000).toISOString();
}
