import { setTimeout as databaseTime, setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { batchPerLedger } from "./batch-per-ledger.ts";

/** Runs of nine calls of nine turns of the event loop, on a database that takes 200 ms. */
async function runsOf(living: readonly string[]): Promise<number[]> {
  const runs: number[] = [];
  const call = batchPerLedger(
    async (_, items: readonly number[]) => {
      runs.push(items.length);
      await databaseTime(200);
      return items;
    },
    { maxItems: 100 },
  );
  const heartbeat = { sentAt: 0, lapsedAt: 0, living };
  const ledger = { heartbeat };
  await call(ledger, 0);
  const calls: Promise<number>[] = [];
  for (let item = 1; item < 9; item += 1) {
    calls.push(call(ledger, item));
    await nextTurn();
    await nextTurn();
  }
  expect(await Promise.all(calls)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  return runs;
}

it("makes no call wait for others in a process that is alone with its ledger", async () => {
  expect(await runsOf(["1"])).toEqual([1, 1, 7]);
});

it("gathers calls while the database has time for the other processes of the ledger", async () => {
  expect(await runsOf(["1", "2", "3", "4"])).toEqual([1, 8]);
});
