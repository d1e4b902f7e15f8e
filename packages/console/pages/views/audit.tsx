import type { AuditRow, Result } from "../api/operations.ts";
import { useOperation } from "../api/use-operation.ts";
import { State, Time } from "../parts/format-parts.tsx";
import { Page } from "../parts/page.tsx";
import { Empty, View } from "../parts/states.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Link, type Place, usePlace, withQuery } from "../router.tsx";
import { AuditEntry } from "./audit-entry.tsx";
import { AuditFilters, readAuditFilters } from "./audit-filters.tsx";

const pageSize = 50;

const columns: readonly Column<AuditRow>[] = [
  { title: "Operation", cell: ({ operation }) => operation },
  { title: "Outcome", cell: ({ outcome }) => <State state={outcome} /> },
  {
    title: "By",
    isExtra: true,
    cell: ({ account, actor }) => (
      <span class="cut" title={account ?? actor}>
        <bdi>{account ?? actor}</bdi>
      </span>
    ),
  },
  { title: "Way", isExtra: true, cell: ({ via }) => via },
  {
    title: "On",
    isExtra: true,
    cell: ({ subject }) => <Subject subject={subject} />,
  },
  { title: "Time", cell: ({ at }) => <Time at={at} /> },
];

/** Acts of operators, the newest first: filters are in the address. */
export function Audit() {
  const place = usePlace();
  const filters = readAuditFilters(place.query);
  const cursor = place.query.get("cursor") ?? undefined;
  const loaded = useOperation("audit.list", {
    ...filters,
    ...(cursor === undefined ? {} : { cursor }),
    limit: pageSize,
  });
  const isFiltered = Object.keys(filters).length > 0;
  return (
    <Page title="Audit">
      <AuditFilters place={place} filters={filters} />
      <View of={loaded} lines={8}>
        {(list) => <List list={list} place={place} isFiltered={isFiltered} />}
      </View>
    </Page>
  );
}

interface ListProps {
  list: Result<"audit.list">;
  place: Place;
  isFiltered: boolean;
}

function List({ list: { entries, nextCursor }, place, isFiltered }: ListProps) {
  return (
    <>
      {entries.length === 0 ? (
        <Nothing isFiltered={isFiltered} />
      ) : (
        <Table
          caption="Audit log"
          columns={columns}
          rows={entries}
          keyOf={({ id }) => id}
          detailOf={(entry) => <AuditEntry entry={entry} />}
        />
      )}
      <nav class="pages" aria-label="Pages of the audit log">
        {place.query.has("cursor") && (
          <Link to={withQuery(place, { cursor: undefined })}>Newest</Link>
        )}
        {nextCursor !== null && <Link to={withQuery(place, { cursor: nextCursor })}>Older</Link>}
      </nav>
    </>
  );
}

/** Payments and refunds are found by their ids. */
function Subject({ subject }: { subject: string | null }) {
  if (subject === null) return <span class="soft">–</span>;
  return (
    <Link class="cut" title={subject} to={`/payments?${new URLSearchParams({ search: subject })}`}>
      <bdi>{subject}</bdi>
    </Link>
  );
}

function Nothing({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) {
    return (
      <Empty title="No entry fits.">
        <Link to="/audit">Show all entries</Link>
      </Empty>
    );
  }
  return <Empty title="No entry yet.">Refunds and other acts of operators are listed here.</Empty>;
}
