import { createTestDatabase } from "@coinslot/devnet";
import { effort } from "@coinslot/devnet/effort";
import { expect, onTestFinished, test } from "vitest";
import { runChannelFaults } from "./channel-run.ts";
import { summariseChannels } from "./channel-summary.ts";

// As many kills on each engine as fit into a quarter of a minute: the chain's time goes fast.
const short = {
  ...{ seed: "short", channels: 10, vouchers: 200 * effort, kills: 5 * effort },
  ...{ secondsPerBlock: 15, claimAfterSeconds: 3 },
};
// A run of a minute; beside other work it takes as much longer as there is of that.
const patienceMs = 600_000 * effort;

test("nothing is lost, given away or charged twice while a seller by channels on SQLite is killed and payers withdraw", {
  timeout: patienceMs,
}, async () => {
  const report = await runChannelFaults({ ...short, processes: 1 });

  console.log(summariseChannels(report));
  expect(report.violations).toEqual([]);
});

test("nothing is lost, given away or charged twice while three sellers by channels share a PostgreSQL", {
  timeout: patienceMs,
}, async () => {
  const { url, drop } = await createTestDatabase();
  onTestFinished(drop);

  const report = await runChannelFaults({ ...short, processes: 3, postgresUrl: url });

  console.log(summariseChannels(report));
  expect(report.violations).toEqual([]);
});
