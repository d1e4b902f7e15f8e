import { setImmediate as nextTurn } from "node:timers/promises";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createBatcher } from "./batcher.ts";
import { createDeferred } from "./testing/deferred.ts";

describe("a batcher", () => {
  it("gives each call its own result, within both of its bounds, in the order of the calls", async () => {
    const load = fc.record({
      maxItems: fc.integer({ min: 1, max: 5 }),
      maxConcurrent: fc.integer({ min: 1, max: 3 }),
      /** Calls of each turn. */
      bursts: fc.array(fc.nat({ max: 8 }), { maxLength: 12 }),
      /** Turns that each run takes. */
      turns: fc.array(fc.nat({ max: 4 }), { minLength: 1, maxLength: 8 }),
    });
    await fc.assert(
      fc.asyncProperty(load, async ({ maxItems, maxConcurrent, bursts, turns }) => {
        const taken: number[] = [];
        let runs = 0;
        let underWay = 0;
        const call = createBatcher(
          async (items: readonly number[]) => {
            taken.push(...items);
            expect(items.length).toBeGreaterThan(0);
            expect(items.length).toBeLessThanOrEqual(maxItems);
            underWay += 1;
            expect(underWay).toBeLessThanOrEqual(maxConcurrent);
            for (let left = turns[runs++ % turns.length] ?? 0; left > 0; left--) await nextTurn();
            underWay -= 1;
            return items.map((item) => (item % 7 === 3 ? new Error(`no ${item}`) : `yes ${item}`));
          },
          { maxItems, maxConcurrent },
        );
        const calls: Promise<string>[] = [];
        for (const burst of bursts) {
          for (let left = burst; left > 0; left--) {
            calls.push(call(calls.length).catch((error: Error) => error.message));
          }
          await nextTurn();
        }
        expect(await Promise.all(calls)).toEqual(
          calls.map((_, item) => (item % 7 === 3 ? `no ${item}` : `yes ${item}`)),
        );
        expect(taken).toEqual([...calls.keys()]);
      }),
    );
  });

  it("gathers the calls of the pause after a run, and makes none wait after it", async () => {
    const runs: number[][] = [];
    const call = createBatcher(
      async (items: readonly number[]) => {
        runs.push([...items]);
        return items;
      },
      { maxItems: 100, pauseMs: () => (runs.length === 1 ? 40 : 0) },
    );
    await call(1);
    const endedAt = performance.now();
    const second = call(2);
    await nextTurn();
    await nextTurn();
    await Promise.all([second, call(3)]);
    expect(performance.now() - endedAt).toBeGreaterThan(30);
    await Promise.all([call(4), nextTurn()]);
    await call(5);
    expect(runs).toEqual([[1], [2, 3], [4], [5]]);
  });

  it("ends a pause as soon as the calls fill a run", async () => {
    const runs: number[][] = [];
    const call = createBatcher(
      async (items: readonly number[]) => {
        runs.push([...items]);
        return items;
      },
      { maxItems: 2, pauseMs: () => 60_000 },
    );
    await call(1);
    const second = call(2);
    await nextTurn();
    expect(await Promise.all([second, call(3)])).toEqual([2, 3]);
    expect(await Promise.all([call(4), call(5)])).toEqual([4, 5]);
    expect(runs).toEqual([[1], [2, 3], [4, 5]]);
  });

  it("makes one run of the calls of a turn, and one of those during a run", async () => {
    const runs: number[][] = [];
    const first = createDeferred();
    const call = createBatcher(
      async (items: readonly number[]) => {
        runs.push([...items]);
        if (runs.length === 1) await first.promise;
        return items;
      },
      { maxItems: 100 },
    );
    const early = [call(1), call(2)];
    await expect.poll(() => runs.length).toBe(1);
    const late = [call(3), call(4), call(5)];
    first.resolve();
    expect(await Promise.all([...early, ...late])).toEqual([1, 2, 3, 4, 5]);
    expect(runs).toEqual([
      [1, 2],
      [3, 4, 5],
    ]);
  });

  it("fails the calls of a failed run, and the call that a run left out, and no others", async () => {
    let runs = 0;
    const call = createBatcher(
      async (items: readonly number[]) => {
        runs += 1;
        if (runs === 1) throw new Error("failed");
        return items.slice(1);
      },
      { maxItems: 2 },
    );
    const outcomes = await Promise.allSettled([call(1), call(2), call(3), call(4)]);
    expect(
      outcomes.map((each) => (each.status === "fulfilled" ? each.value : each.reason)),
    ).toEqual([new Error("failed"), new Error("failed"), 4, expect.any(TypeError)]);
  });
});
