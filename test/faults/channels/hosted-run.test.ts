import { createTestDatabase } from "@coinslot/devnet";
import { byDay, effort } from "@coinslot/devnet/effort";
import { expect, onTestFinished, test } from "vitest";
import { runHostedFaults } from "./hosted-run.ts";

// A run of half a minute; beside other work it takes as much longer as there is of that.
const patienceMs = 600_000 * effort;

test.each(byDay(["postgres"], ["postgres", "sqlite"]))(
  "each call of the escrow is made once, and answered as the chain has it, while facilitators on %s are killed",
  { timeout: patienceMs },
  async (engine) => {
    const database = engine === "postgres" ? await createTestDatabase() : undefined;
    onTestFinished(async () => database?.drop());
    const size = { channels: 4, rounds: effort, kills: 3 * effort };
    const processes = engine === "postgres" ? 2 : 1;
    const report = await runHostedFaults({
      ...{ seed: "short", ...size, processes },
      postgresUrl: database?.url,
    });

    const { sellers, deaths, reorganisations, seconds } = report;
    const calls = sellers.flatMap((each) => each.calls);
    const attempts = calls.reduce((sum, { outcome }) => sum + outcome.attempts, 0);
    console.log({ engine, calls: calls.length, attempts, deaths, reorganisations, seconds });
    expect(report.violations).toEqual([]);
  },
);
