import { formatCount, formatDecimal } from "@coinslot/pages/format";
import type { Result } from "../api/operations.ts";
import { useOperation } from "../api/use-operation.ts";
import { toWhole } from "../parts/amounts.ts";
import { Copyable, networkName, State } from "../parts/format-parts.tsx";
import { Page } from "../parts/page.tsx";
import { Empty, View } from "../parts/states.tsx";
import { type Column, Table } from "../parts/table.tsx";

type Row = Result<"relayers.list">["relayers"][number];

const coinDecimals = 18;

const columns: readonly Column<Row>[] = [
  { title: "Relayer", cell: ({ relayer }) => <Copyable text={relayer} what="address" /> },
  { title: "Network", isExtra: true, cell: ({ network }) => networkName(network) },
  { title: "State", cell: (row) => <State state={stateOf(row)} /> },
  {
    title: "Balance",
    isNumeric: true,
    cell: ({ balance, symbol }) => <Coins wei={balance} symbol={symbol} />,
  },
  {
    title: "Burn a day",
    isNumeric: true,
    isExtra: true,
    cell: ({ burnPerDay, symbol }) => <Coins wei={burnPerDay} symbol={symbol} />,
  },
  {
    title: "Days left",
    isNumeric: true,
    cell: ({ daysLeft }) => (daysLeft === null ? "–" : daysText(daysLeft)),
  },
  { title: "Queued", isNumeric: true, isExtra: true, cell: ({ queued }) => formatCount(queued) },
  { title: "In flight", isNumeric: true, isExtra: true, cell: ({ inFlight }) => inFlight },
  {
    title: "Next nonce",
    isNumeric: true,
    isExtra: true,
    cell: ({ nextNonce }) => nextNonce ?? "–",
  },
];

/** Relayers: gas money, and what is in flight. */
export function Relayers() {
  const loaded = useOperation("relayers.list", {});
  return (
    <Page title="Relayers">
      <View of={loaded}>
        {({ relayers, source }) => (
          <>
            {source === "ledger" && (
              <p class="soft">No running seller was asked: balances are not known.</p>
            )}
            {relayers.length === 0 ? (
              <Empty title="No relayer yet.">A seller makes its relayers when it starts.</Empty>
            ) : (
              <Table
                caption="Relayers"
                columns={columns}
                rows={relayers}
                keyOf={({ network, relayer }) => `${network} ${relayer}`}
              />
            )}
          </>
        )}
      </View>
    </Page>
  );
}

/** Largest number that is shown. */
const maxDays = 999;
const daysText = (days: number) => (days > maxDays ? `${maxDays}+` : String(Math.floor(days)));

function stateOf({ state, isExhausted, isLow, signerFault }: Row): string {
  if (signerFault !== null) return `signer ${signerFault}`;
  if (isExhausted === true) return "exhausted";
  return isLow === true ? "low" : state;
}

/** To six decimals: the rest is on hover. */
function Coins({ wei, symbol }: { wei: string | null; symbol: string }) {
  if (wei === null) return <span class="soft">–</span>;
  const whole = toWhole(wei, coinDecimals);
  const [integer = "0", fraction = ""] = whole.split(".");
  return (
    <span class="money figures" title={`${whole} ${symbol}`}>
      {formatDecimal(`${integer}.${fraction.slice(0, 6).padEnd(6, "0")}`)}{" "}
      <span class="unit">{symbol}</span>
    </span>
  );
}
