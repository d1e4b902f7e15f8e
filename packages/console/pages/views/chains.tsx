import { formatCount } from "@coinslot/pages/format";
import type { Result } from "../api/operations.ts";
import { useOperation } from "../api/use-operation.ts";
import { State, Time } from "../parts/format-parts.tsx";
import { Facts, Page } from "../parts/page.tsx";
import { Empty, View } from "../parts/states.tsx";
import { type Column, Table } from "../parts/table.tsx";

type Chain = Result<"chains.list">["chains"][number];
type Endpoint = Chain["endpoints"][number];

const columns: readonly Column<Endpoint>[] = [
  { title: "Node", cell: ({ endpoint, host }) => `${endpoint}: ${host}` },
  {
    title: "State",
    cell: ({ state, isLagging }) => <State state={isLagging ? "lagging" : state} />,
  },
  {
    title: "Head",
    isNumeric: true,
    isExtra: true,
    cell: ({ head }) => (head === null ? "–" : formatCount(head)),
  },
  {
    title: "Latency",
    isNumeric: true,
    cell: ({ latencyMs }) => (latencyMs === null ? "–" : `${Math.round(latencyMs)} ms`),
  },
  {
    title: "Errors",
    isNumeric: true,
    cell: ({ errorRate, failures, requests }) => (
      <span title={`${failures} of ${requests} requests`}>
        {errorRate === null ? "–" : `${(errorRate * 100).toFixed(1)}%`}
      </span>
    ),
  },
  { title: "Last failure", isExtra: true, cell: ({ lastFailure }) => lastFailure ?? "–" },
];

/** Chains: head, nodes and reorganisations. */
export function Chains() {
  const loaded = useOperation("chains.list", {});
  return (
    <Page title="Chains">
      <View of={loaded}>
        {({ chains, source }) => (
          <>
            {source === "ledger" && (
              <p class="soft">No running seller was asked: heads and nodes are not known.</p>
            )}
            {chains.length === 0 && (
              <Empty title="No chain yet.">A seller names its chains when it starts.</Empty>
            )}
            {chains.map((chain) => (
              <ChainOf key={chain.network} chain={chain} />
            ))}
          </>
        )}
      </View>
    </Page>
  );
}

function ChainOf({ chain }: { chain: Chain }) {
  return (
    <section class="section">
      <h2>
        {chain.name} <span class="soft">{chain.network}</span> <Health chain={chain} />
      </h2>
      <Facts
        facts={[
          ["Head", chain.head === null ? "–" : formatCount(chain.head.number)],
          ["Seen", chain.head === null ? "–" : <Time key="head" at={chain.head.at} />],
          ["Lag", chain.lagSeconds === null ? "–" : `${Math.round(chain.lagSeconds)} s`],
          ["Not final", formatCount(chain.notFinal)],
          ["Taken back", `${formatCount(chain.reverted)} payments in the last hour`],
        ]}
      />
      {chain.endpoints.length > 0 && (
        <Table
          caption={`Nodes of ${chain.name}`}
          columns={columns}
          rows={chain.endpoints}
          keyOf={({ endpoint }) => String(endpoint)}
        />
      )}
    </section>
  );
}

function Health({ chain }: { chain: Chain }) {
  if (chain.isReachable === false) return <State state="unreachable" />;
  if (chain.isStalled === true) return <State state="stalled" />;
  return chain.head === null ? null : <State state="live" />;
}
