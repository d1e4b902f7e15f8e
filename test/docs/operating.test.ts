import { createFacilitator } from "@coinslot/facilitator";
import { expect, it } from "vitest";
import {
  paymentStates,
  type TransactionState,
} from "../../packages/facilitator/src/ledger/schema.ts";
import { createFacilitatorMetrics } from "../../packages/hosting/src/facilitator/service-metrics.ts";
import { createIndexerMetrics } from "../../packages/hosting/src/indexer/service-metrics.ts";
import { createApiMetrics } from "../../packages/indexer/src/api/api-metrics.ts";
import { readDocument } from "./code-block.ts";
import { readTables } from "./tables.ts";

const tables = readTables(readDocument("docs/operating.md"));
const namesUnder = (heading: string) =>
  tables.filter((table) => table.heading === heading).flatMap(({ names }) => names);

/** The names in the text of a scrape. */
const metricsIn = (scrape: string) =>
  [...scrape.matchAll(/^# HELP (coinslot_\w+)/gm)].map(([, name]) => name);

it("docs/operating.md explains exactly the existing metrics", async () => {
  const facilitator = createFacilitator({
    networks: [
      { network: "eip155:9745", rpcUrls: ["http://127.0.0.1:1"], relayer: `0x${"77".repeat(32)}` },
    ],
    ledger: "sqlite::memory:",
  });
  const hosted = await createFacilitatorMetrics().read(facilitator.metrics);
  const indexer = createIndexerMetrics().registry;
  createApiMetrics(indexer);
  await facilitator.close();
  const names = metricsIn([hosted.text, await indexer.metrics()].join("\n"));
  expect(namesUnder("Metric").toSorted()).toEqual(names.toSorted());
});

it("docs/operating.md explains every state of a payment, in order", () => {
  expect(namesUnder("State")).toEqual([...paymentStates]);
});

it("docs/operating.md explains every state of a transaction", () => {
  const states: Record<TransactionState, true> = {
    open: true,
    settled: true,
    final: true,
    lost: true,
  };
  expect(namesUnder("Transaction")).toEqual(Object.keys(states));
});
