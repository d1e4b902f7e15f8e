import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it, onTestFinished, vi } from "vitest";
import { batchPerLedger, pauseAfter } from "./batch-per-ledger.ts";

const runMs = 20;

/**
 * Calls of a process, of a database that takes 20 ms for a run. Time stands still between steps.
 */
function begin(processes: number) {
  vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const runs: (readonly number[])[] = [];
  const calls: Promise<number>[] = [];
  const call = batchPerLedger(
    async (_, items: readonly number[]) => {
      runs.push(items);
      await new Promise((resolve) => setTimeout(resolve, runMs));
      return items;
    },
    { maxItems: 100 },
  );
  const living = Array.from({ length: processes }, (_, index) => String(index));
  const heartbeat = {
    sentAt: 0,
    lapsedAt: 0,
    living,
    writtenAt: 0,
    unsureSince: -1,
    isMissing: false,
  };
  const ledger = { heartbeat };
  return {
    runs,
    calls,
    /** Makes calls in one turn of the event loop. */
    async call(...items: number[]) {
      for (const item of items) calls.push(call(ledger, item));
      await nextTurn();
      await nextTurn();
    },
    async pass(ms: number) {
      await vi.advanceTimersByTimeAsync(ms);
      await nextTurn();
      await nextTurn();
    },
  };
}

it("makes no call wait for others in a process that is alone with its ledger", async () => {
  const { call, pass, calls, runs } = begin(1);
  await call(1, 2);
  await pass(runMs);
  await call(3);
  await call(4);
  await call(5);
  expect(runs).toEqual([[1, 2], [3]]);
  await pass(runMs);
  await pass(runMs);
  expect(runs).toEqual([[1, 2], [3], [4, 5]]);
  expect(await Promise.all(calls)).toEqual([1, 2, 3, 4, 5]);
});

it("gathers calls while the database has time for the other processes of the ledger", async () => {
  const { call, pass, calls, runs } = begin(3);
  await call(1, 2, 3);
  await pass(runMs);
  await call(4);
  await pass(2 * runMs - 1);
  await call(5);
  expect(runs).toEqual([[1, 2, 3]]);
  await pass(1);
  expect(runs).toEqual([
    [1, 2, 3],
    [4, 5],
  ]);
  await pass(runMs);
  expect(await Promise.all(calls)).toEqual([1, 2, 3, 4, 5]);
});

it("makes no call wait for others after a call that was alone", async () => {
  const { call, pass, runs } = begin(10);
  await call(1);
  await pass(runMs);
  await call(2);
  expect(runs).toEqual([[1], [2]]);
  await pass(runMs);
});

it("leaves the database time for a run of each other process, by the items of its own", () => {
  const pauseOf = (processes: number, items: number, tookMs = 10) =>
    pauseAfter(
      { heartbeat: { living: Array.from({ length: processes }, (_, index) => String(index)) } },
      { tookMs, items },
    );
  expect([1, 2, 3, 4, 10, 250].map((items) => pauseOf(4, items))).toEqual([0, 10, 20, 30, 30, 30]);
  expect([1, 2, 10].map((processes) => pauseOf(processes, 40))).toEqual([0, 10, 90]);
  expect([1, 2].map((items) => pauseOf(10, items, 1_000))).toEqual([0, 100]);
});
