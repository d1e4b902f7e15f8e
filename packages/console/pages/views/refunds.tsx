import { useState } from "preact/hooks";
import type { Reads, RefundRow } from "../api/operations.ts";
import { useMayAct } from "../api/session.ts";
import { useOperation } from "../api/use-operation.ts";
import { Copyable, Money, networkName, State, Time } from "../parts/format-parts.tsx";
import { Page } from "../parts/page.tsx";
import { Empty, View } from "../parts/states.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { go, Link, usePlace, withQuery } from "../router.tsx";
import { type AskedAct, hasActs, RefundActDialog, RefundActs } from "./refund-acts.tsx";

const columns: readonly Column<RefundRow>[] = [
  { title: "Amount", isNumeric: true, cell: (row) => <Money money={moneyOf(row)} /> },
  { title: "State", cell: (row) => <State state={row.state} /> },
  {
    title: "Payment",
    cell: (row) => (
      <Link to={`/payments/${row.payment}`} class="cut">
        <bdi>{row.reason ?? row.payment}</bdi>
      </Link>
    ),
  },
  { title: "To", isExtra: true, cell: (row) => <Copyable text={row.payer} what="address" /> },
  { title: "Network", isExtra: true, cell: (row) => networkName(row.network) },
  { title: "Created", isExtra: true, cell: (row) => <Time at={row.createdAt} /> },
];

/** States that wait for the operator, and those of the way. */
const states = [
  ...["scheduled", "waiting", "unsigned", "review", "blocked"],
  ...["manual", "sent", "confirmed", "final", "void"],
];

/** All refunds, the newest first, or those of a state. */
export function Refunds() {
  const place = usePlace();
  const cursor = place.query.get("cursor") ?? undefined;
  const state = parseState(place.query.get("state"));
  const mayAct = useMayAct();
  const [asked, setAsked] = useState<AskedAct>();
  const loaded = useOperation("refunds.list", {
    limit: 50,
    ...(cursor === undefined ? {} : { cursor }),
    ...(state === undefined ? {} : { state }),
  });
  const acts: Column<RefundRow> = {
    title: "Action",
    cell: (row) => <RefundActs refund={row} onAsk={setAsked} />,
  };
  return (
    <Page title="Refunds" actions={<States state={state} />}>
      <View of={loaded} lines={8}>
        {({ refunds, nextCursor }) => (
          <>
            {refunds.length === 0 ? (
              <Nothing state={state} />
            ) : (
              <Table
                caption="Refunds"
                columns={mayAct && refunds.some(hasActs) ? [...columns, acts] : columns}
                rows={refunds}
                keyOf={({ id }) => id}
              />
            )}
            {nextCursor !== undefined && (
              <nav class="pages" aria-label="Pages of refunds">
                <button type="button" onClick={() => go(withQuery(place, { cursor: nextCursor }))}>
                  Older
                </button>
              </nav>
            )}
          </>
        )}
      </View>
      {asked !== undefined && <RefundActDialog asked={asked} onClose={() => setAsked(undefined)} />}
    </Page>
  );
}

type RefundState = NonNullable<Reads["refunds.list"]["argument"]["state"]>;

function parseState(text: string | null): RefundState | undefined {
  return states.find((state): state is RefundState => state === text);
}

function States({ state = "" }: { state?: string | undefined }) {
  return (
    <label for="state">
      <span class="aside">State</span>
      <select
        id="state"
        value={state}
        onChange={({ currentTarget: { value } }) =>
          go(value === "" ? "/refunds" : `/refunds?state=${value}`)
        }
      >
        <option value="">All states</option>
        {states.map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
    </label>
  );
}

function Nothing({ state }: { state: string | undefined }) {
  if (state === undefined) {
    return <Empty title="No refund yet.">A payment's page has the button.</Empty>;
  }
  return (
    <Empty title={`No refund is ${state}.`}>
      <Link to="/refunds">Show all refunds</Link>
    </Empty>
  );
}

function moneyOf({ asset, amount, symbol, whole }: RefundRow) {
  return { asset, value: amount, symbol: symbol ?? null, amount: whole ?? null };
}
