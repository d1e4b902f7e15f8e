import { formatCount } from "@coinslot/pages/format";
import { useState } from "preact/hooks";
import { act } from "../api/act.ts";
import type { Result } from "../api/operations.ts";
import { useMayAct } from "../api/session.ts";
import { useOperation } from "../api/use-operation.ts";
import { State, Time } from "../parts/format-parts.tsx";
import { Page } from "../parts/page.tsx";
import { Empty, Fault, View } from "../parts/states.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { useAttempt } from "../parts/use-attempt.ts";
import { Link } from "../router.tsx";

type Endpoint = Result<"webhooks.list">["endpoints"][number];
type Dead = Result<"webhooks.dead">["dead"][number];

const endpointColumns: readonly Column<Endpoint>[] = [
  {
    title: "Receiver",
    cell: ({ url, id }) => (
      <bdi class="lines" title={id}>
        {url}
      </bdi>
    ),
  },
  { title: "State", cell: ({ isEnabled }) => <State state={isEnabled ? "enabled" : "disabled"} /> },
  { title: "Waiting", isNumeric: true, cell: ({ pending }) => formatCount(pending) },
  { title: "Given up", isNumeric: true, cell: ({ dead }) => formatCount(dead) },
  {
    title: "Oldest",
    isExtra: true,
    cell: ({ oldestPendingMs }) => <Time at={oldestPendingMs} />,
  },
  {
    title: "Events",
    isExtra: true,
    cell: ({ types }) => (
      <span class="figures" title={types.join(", ")}>
        {types.length === 1 ? types[0] : `${types.length} types`}
      </span>
    ),
  },
];

/** Receivers of webhooks, and the events that were given up. */
export function Webhooks() {
  const endpoints = useOperation("webhooks.list", {});
  const dead = useOperation("webhooks.dead", { limit: 100 });
  const mayAct = useMayAct();
  const sending = useSending();
  const tests: Column<Endpoint> = {
    title: "Action",
    cell: (row) => (
      <button
        type="button"
        disabled={sending.isBusy || !row.isEnabled}
        onClick={() => void sending.test(row)}
      >
        Send a test
      </button>
    ),
  };
  const columns: Column<Dead>[] = [
    { title: "Event", cell: ({ type, id }) => <span title={id}>{type}</span> },
    {
      title: "Payment",
      cell: ({ key }) =>
        /^[0-9a-f]{44}$/.test(key) ? (
          <Link class="cut" to={`/payments/${key}`}>
            {key}
          </Link>
        ) : (
          key
        ),
    },
    { title: "Attempts", isNumeric: true, isExtra: true, cell: ({ attempts }) => attempts },
    {
      title: "Error",
      isExtra: true,
      cell: ({ error }) => (
        <span title={error} class="cut">
          <bdi>{error}</bdi>
        </span>
      ),
    },
    { title: "Given up", isExtra: true, cell: ({ endedAt }) => <Time at={endedAt} /> },
    ...(mayAct
      ? [
          {
            title: "Action",
            cell: (row: Dead) => (
              <button
                type="button"
                disabled={sending.isBusy}
                onClick={() => void sending.again(row)}
              >
                Send again
              </button>
            ),
          },
        ]
      : []),
  ];
  return (
    <Page title="Webhooks">
      {sending.error && <Fault error={sending.error} />}
      <p role="status">{sending.said}</p>
      <View of={endpoints} lines={3}>
        {(list) =>
          list.endpoints.length === 0 ? (
            <Empty title="No receiver.">
              The option <code>webhooks</code> of the facilitator names them.
            </Empty>
          ) : (
            <Table
              caption="Receivers"
              columns={mayAct ? [...endpointColumns, tests] : endpointColumns}
              rows={list.endpoints}
              keyOf={({ id }) => id}
            />
          )
        }
      </View>
      <section class="section">
        <h2>Given up</h2>
        <View of={dead} lines={3}>
          {(list) =>
            list.dead.length === 0 ? (
              <Empty title="No event was given up." />
            ) : (
              <Table
                caption="Events that were given up"
                columns={columns}
                rows={list.dead}
                keyOf={({ endpoint, id }) => `${endpoint} ${id}`}
              />
            )
          }
        </View>
      </section>
    </Page>
  );
}

/** Sends an event again, with its own id: a receiver that has it ignores it. Or a test. */
function useSending() {
  const attempt = useAttempt();
  const [said, setSaid] = useState("");
  return {
    ...attempt,
    said,
    again: ({ endpoint, id }: Dead) =>
      attempt.run(async () => {
        const subject = `${endpoint} ${id}`;
        const { replayed } = await act("webhooks.replay", { endpoint, id, after: 0 }, { subject });
        setSaid(`${replayed} event is on its way again.`);
      }),
    test: ({ id }: Endpoint) =>
      attempt.run(async () => {
        await act("webhooks.test", { endpoint: id }, { subject: id });
        setSaid("A test is on its way: it is among the waiting ones until it has arrived.");
      }),
  };
}
