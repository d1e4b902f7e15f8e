import { formatCount } from "@coinslot/pages/format";
import type { Result } from "../api/operations.ts";
import { useMayAct } from "../api/session.ts";
import { useOperation } from "../api/use-operation.ts";
import { Copyable, Money, networkName, Time } from "../parts/format-parts.tsx";
import { Page } from "../parts/page.tsx";
import { Empty, View } from "../parts/states.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { go, usePlace, withQuery } from "../router.tsx";
import { BooksCheck } from "./books-check.tsx";
import { BooksClose } from "./books-close.tsx";

type Books = Result<"books.sums">;
type Sum = Books["sums"][number];
type Period = Books["periods"][number];

const columns: readonly Column<Sum>[] = [
  { title: "Kind", cell: ({ kind }) => kind },
  { title: "Route", cell: ({ route }) => <bdi class="lines">{route ?? "–"}</bdi> },
  { title: "Network", isExtra: true, cell: ({ money }) => networkName(money.network) },
  { title: "Entries", isNumeric: true, isExtra: true, cell: ({ count }) => formatCount(count) },
  { title: "Amount", isNumeric: true, cell: ({ money }) => <Money money={money} /> },
];

const periodColumns: readonly Column<Period>[] = [
  { title: "Closed to", cell: ({ closedTo }) => closedTo.slice(0, 16).replace("T", " ") },
  { title: "Closed", cell: ({ closedAt }) => <Time at={closedAt} /> },
  {
    title: "Digest",
    isExtra: true,
    cell: ({ digest }) => <Copyable text={digest} what="digest" />,
  },
];

/** The books of a month: sums, closed periods, and the check against the ledger. */
export function Books() {
  const place = usePlace();
  const month = readMonth(place.query.get("month"));
  const range = rangeOf(month);
  const loaded = useOperation("books.sums", range);
  const mayAct = useMayAct();
  return (
    <Page
      title="Books"
      actions={
        <>
          <label for="month">
            <span class="aside">Month</span>
            <input
              id="month"
              type="month"
              value={month}
              onChange={({ currentTarget }) => go(withQuery(place, { month: currentTarget.value }))}
            />
          </label>
          {mayAct && <BooksClose key={month} until={range.to} />}
        </>
      }
    >
      <View of={loaded}>
        {(books) => (
          <>
            {books.isUnfinished && (
              <p class="soft">Payments from before the books are being posted: sums still grow.</p>
            )}
            {books.unpricedTransactions > 0 && (
              <p class="soft">
                {books.unpricedTransactions} transactions have gas without a known price: it is not
                in the books.
              </p>
            )}
            {books.sums.length === 0 ? (
              <Empty title="No entry in this month.">Entries are posted with each block.</Empty>
            ) : (
              <Table
                caption="Sums of the month"
                columns={columns}
                rows={books.sums}
                keyOf={({ kind, route, money }) =>
                  `${kind} ${route} ${money.network} ${money.asset}`
                }
              />
            )}
            <section class="section">
              <h2>Check</h2>
              <BooksCheck key={month} range={range} />
            </section>
            <section class="section">
              <h2>Closed periods</h2>
              {books.periods.length === 0 ? (
                <Empty title="No period is closed." />
              ) : (
                <Table
                  caption="Closed periods"
                  columns={periodColumns}
                  rows={books.periods}
                  keyOf={({ closedTo }) => closedTo}
                />
              )}
            </section>
          </>
        )}
      </View>
    </Page>
  );
}

/** Such as `2026-11`, in UTC. Default this month. */
function readMonth(text: string | null): string {
  return text !== null && /^\d{4}-(0[1-9]|1[0-2])$/.test(text)
    ? text
    : new Date().toISOString().slice(0, 7);
}

function rangeOf(month: string): { from: string; to: string } {
  const [year = 0, number = 1] = month.split("-").map(Number);
  return {
    from: new Date(Date.UTC(year, number - 1)).toISOString(),
    to: new Date(Date.UTC(year, number)).toISOString(),
  };
}
