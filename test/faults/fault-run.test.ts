import { createTestDatabase } from "@coinslot/devnet";
import { effort } from "@coinslot/devnet/effort";
import { expect, onTestFinished, test } from "vitest";
import { runFaults } from "./fault-run.ts";
import { summarise } from "./summary.ts";

const short = { seed: "short", payments: 60 * effort, kills: 4 * effort };
const patienceMs = 600_000 * effort;

test("no payment is lost, given away or taken twice while a seller on SQLite is killed and its chain lies", {
  timeout: patienceMs,
}, async () => {
  const report = await runFaults({ ...short, processes: 1 });

  console.log(summarise(report));
  expect(report.violations).toEqual([]);
});

test("no payment is lost, given away or taken twice while three sellers share a PostgreSQL", {
  timeout: patienceMs,
}, async () => {
  const { url, drop } = await createTestDatabase();
  onTestFinished(drop);

  const report = await runFaults({ ...short, processes: 3, postgresUrl: url });

  console.log(summarise(report));
  expect(report.violations).toEqual([]);
});
