import { Registry } from "prom-client";
import { expect, it } from "vitest";
import { registerReadiness } from "./readiness-metric.ts";

it.each([
  ["0 while the start is not over", () => new Promise<void>(() => undefined), undefined, 0],
  ["0 after a start that failed", () => Promise.reject(new Error("no chain")), undefined, 0],
  ["0 while the ledger cannot be written", async () => undefined, "the disk is full", 0],
  ["1 otherwise", async () => undefined, undefined, 1],
])("readiness is %s", async (_when, ready, obstacle, value) => {
  const registry = new Registry();
  registerReadiness(registry, { ready, health: { obstacle: () => obstacle } });
  expect(await registry.metrics()).toContain(`coinslot_ready ${value}`);
});
