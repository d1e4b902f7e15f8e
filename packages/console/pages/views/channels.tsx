import { formatCount } from "@coinslot/pages/format";
import { useState } from "preact/hooks";
import type { Result } from "../api/operations.ts";
import { useMayAct } from "../api/session.ts";
import { useOperation } from "../api/use-operation.ts";
import { Copyable, Money, networkName, State, Time } from "../parts/format-parts.tsx";
import { Facts, Page } from "../parts/page.tsx";
import { Empty, View } from "../parts/states.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Link, usePlace, withQuery } from "../router.tsx";
import { ClaimDialog } from "./claim-dialog.tsx";

type Row = Result<"channels.list">["channels"][number];
type Total = Result<"channels.totals">["totals"][number];
type Show = "all" | "unclaimed" | "lost";

const lists: readonly (readonly [Show, string])[] = [
  ["all", "All"],
  ["unclaimed", "Unclaimed"],
  ["lost", "Lost"],
];

const money = (title: string, of: (row: Row) => Row["charged"], isExtra = true): Column<Row> => ({
  title,
  isNumeric: true,
  isExtra,
  cell: (row) => <Money money={of(row)} />,
});

const channel: Column<Row> = {
  title: "Channel",
  cell: ({ id }) => (
    <Link to={`/channels/${id}`} title={id}>
      <code>{id.slice(0, 12)}</code>
    </Link>
  ),
};
const state: Column<Row> = { title: "State", cell: (row) => <State state={row.state} /> };
const unclaimed = money("Unclaimed", (row) => row.unclaimed, false);
const payer: Column<Row> = {
  title: "Payer",
  isExtra: true,
  cell: (row) => <Copyable text={row.payer} what="address of the payer" />,
};
const refusal: Column<Row> = {
  title: "Claim",
  cell: (row) =>
    row.refusal === null ? "–" : <span class="state warn">refused: {row.refusal.error}</span>,
};
const lastCharge: Column<Row> = {
  title: "Last charge",
  isExtra: true,
  cell: ({ lastChargeAt }) => <Time at={lastChargeAt} />,
};
const deadline: Column<Row> = {
  title: "Deadline",
  cell: ({ withdrawal }) => <Time at={withdrawal?.deadline} />,
};

/** Of channels whose payer withdraws. */
const atRiskColumns = [
  ...[channel, { ...state, isExtra: true }, deadline, unclaimed],
  ...[money("At risk", (row) => row.atRisk), payer],
];

/** Of a list: refusals and losses where there are any. */
function columnsOf(rows: readonly Row[]): Column<Row>[] {
  return [
    ...[channel, state, unclaimed, money("Charged", (row) => row.charged)],
    ...(rows.some(({ lost }) => lost.value !== "0") ? [money("Lost", (row) => row.lost)] : []),
    money("Locked", (row) => row.locked),
    ...(rows.some((row) => row.refusal !== null) ? [refusal] : []),
    ...[payer, lastCharge],
  ];
}

/** Channels: those whose payer withdraws first, then all, page by page. */
export function Channels() {
  const place = usePlace();
  const mayAct = useMayAct();
  const [isClaiming, setIsClaiming] = useState(false);
  const wanted = place.query.get("show");
  const show = lists.find(([name]) => name === wanted)?.[0] ?? "all";
  const cursor = place.query.get("cursor") ?? undefined;
  const totals = useOperation("channels.totals", {});
  const atRisk = useOperation("channels.list", { show: "withdrawing" });
  const listed = useOperation("channels.list", {
    show,
    ...(cursor === undefined ? {} : { cursor }),
  });
  return (
    <Page
      title="Channels"
      actions={
        mayAct &&
        totals.data?.totals.some(({ due }) => due > 0) && (
          <button type="button" onClick={() => setIsClaiming(true)}>
            Claim all
          </button>
        )
      }
    >
      <View of={totals}>
        {({ totals: sums }) =>
          sums.map((total) => <Sums key={`${total.network} ${total.token}`} total={total} />)
        }
      </View>
      <View of={atRisk} lines={1}>
        {({ channels, nextCursor }) =>
          channels.length > 0 && (
            <section class="section">
              <h2>Payers withdraw</h2>
              <p class="notice">
                Unclaimed money is at risk until the deadline. The seller claims it by itself
                {nextCursor !== null && "; there are more than are shown here"}.
              </p>
              <Channel rows={channels} columns={atRiskColumns} caption="Channels at risk" />
            </section>
          )
        }
      </View>
      <section class="section">
        <nav class="pages lists" aria-label="Lists of channels">
          {lists.map(([name, title]) => (
            <Link
              key={name}
              to={withQuery(place, { show: name, cursor: undefined })}
              isCurrent={name === show}
            >
              {title}
            </Link>
          ))}
        </nav>
        <View of={listed}>
          {({ channels, nextCursor }) => (
            <>
              {channels.length === 0 ? (
                <Empty title="No channel here.">
                  A channel is listed with its first voucher, on a route that sells by
                  batch-settlement.
                </Empty>
              ) : (
                <Channel rows={channels} columns={columnsOf(channels)} caption="Channels" />
              )}
              <nav class="pages" aria-label="Pages of channels">
                {nextCursor !== null && (
                  <Link to={withQuery(place, { cursor: nextCursor })}>Next</Link>
                )}
              </nav>
            </>
          )}
        </View>
      </section>
      {isClaiming && <ClaimDialog onClose={() => setIsClaiming(false)} />}
    </Page>
  );
}

interface ChannelProps {
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  caption: string;
}

function Channel({ rows, columns: shown, caption }: ChannelProps) {
  return (
    <Table
      caption={caption}
      columns={shown}
      rows={rows}
      keyOf={({ network, contract, id }) => `${network} ${contract} ${id}`}
    />
  );
}

function Sums({ total }: { total: Total }) {
  const { network, channels, due, watched, refused } = total;
  return (
    <Facts
      facts={[
        ["Network", networkName(network)],
        ["Channels", `${formatCount(channels)}, ${formatCount(due)} with unclaimed money`],
        ["Unclaimed", <Money key="unclaimed" money={total.unclaimed} />],
        ["At risk", <Money key="risk" money={total.atRisk} />],
        ["Lost", <Money key="lost" money={total.lost} />],
        ["Locked", <Money key="locked" money={total.locked} />],
        ["Oldest unclaimed", <Time key="since" at={total.unclaimedSince} />],
        ["Next deadline", <Time key="deadline" at={total.nextDeadline} />],
        ["Claims refused", refused ?? "–"],
        [
          "Watched block",
          watched === null ? (
            "–"
          ) : (
            <span key="watched">
              {formatCount(watched.block)}, <Time at={watched.at} />
            </span>
          ),
        ],
      ]}
    />
  );
}
