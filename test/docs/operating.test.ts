import { expect, it } from "vitest";
import { paymentStates } from "../../packages/facilitator/src/ledger/schema.ts";
import type { TransactionState } from "../../packages/facilitator/src/ledger/transactions-schema.ts";
import { readDocument } from "./code-block.ts";
import { readExistingMetrics } from "./existing-metrics.ts";
import { readTables } from "./tables.ts";

const tables = readTables(readDocument("docs/operating.md"));
const namesUnder = (heading: string) =>
  tables.filter((table) => table.heading === heading).flatMap(({ names }) => names);

it("docs/operating.md explains exactly the existing metrics", async () => {
  const names = [...(await readExistingMetrics()).keys()];
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
