import { formatCount } from "@coinslot/pages/format";
import type { Result } from "../api/operations.ts";
import { useOperation } from "../api/use-operation.ts";
import { runbookPath } from "../parts/markdown.tsx";
import { Empty, View } from "../parts/states.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Link } from "../router.tsx";

type Row = Result<"visits">["visits"][number];

const columns: readonly Column<Row>[] = [
  { title: "Reason", cell: ({ reason }) => <code>{reason}</code> },
  {
    title: "Route",
    cell: ({ route }) => (route ? <bdi>{route}</bdi> : <span class="soft">Without a name</span>),
  },
  { title: "Requests", isNumeric: true, cell: ({ count }) => formatCount(count) },
];

/** Requests whose payment was refused, by reason and route, the most frequent first. */
export function Refusals({ from }: { from?: string }) {
  const by: ("route" | "reason")[] = ["route", "reason"];
  const loaded = useOperation("visits", { by, ...(from === undefined ? {} : { from }) });
  return (
    <section class="section">
      <h2>Refusals</h2>
      <View of={loaded} lines={2}>
        {({ visits }) => <List visits={visits.filter(({ reason }) => reason !== "offered")} />}
      </View>
    </section>
  );
}

function List({ visits }: { visits: readonly Row[] }) {
  if (visits.length === 0) return <Empty title="No payment was refused." />;
  return (
    <>
      <p class="soft">
        By the day in UTC, ten seconds late.{" "}
        <Link to={runbookPath("protocol.md", "reasons-in-counts")}>All reasons</Link>
      </p>
      <Table
        caption="Refusals"
        columns={columns}
        rows={visits.toSorted((one, other) => other.count - one.count)}
        keyOf={({ route, reason }) => `${reason} ${route}`}
      />
    </>
  );
}
