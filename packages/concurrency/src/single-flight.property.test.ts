import { setImmediate as nextTurn } from "node:timers/promises";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createKeyedSingleFlight } from "./keyed-single-flight.ts";
import { createSingleFlight, onceSuccessful } from "./single-flight.ts";
import { createDeferred, type Deferred } from "./testing/deferred.ts";

/** A task whose runs a test ends; each returns its number, from 1 on. */
function createTask() {
  let run: Deferred<number> | undefined;
  const task = {
    begun: 0,
    isRunning: () => run !== undefined,
    start: (): Promise<number> => {
      if (run !== undefined) throw new Error("Two runs at a time");
      task.begun += 1;
      run = createDeferred<number>();
      return run.promise;
    },
    end: () => {
      const ended = run;
      run = undefined;
      ended?.resolve(task.begun);
    },
    fail: () => {
      const ended = run;
      run = undefined;
      ended?.reject(new Error(`run ${task.begun}`));
    },
  };
  return task;
}

async function endAll(task: ReturnType<typeof createTask>, isDone: () => boolean): Promise<void> {
  while (!isDone() || task.isRunning()) {
    task.end();
    await nextTurn();
  }
}

describe("a single flight", () => {
  it("never runs twice at a time, and gives each caller the run that it asked for", async () => {
    const step = fc.constantFrom("join", "next", "trigger", "end", "microtask", "turn" as const);
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60, size: "max" }), async (steps) => {
        const task = createTask();
        const flight = createSingleFlight(task.start);
        const checks: Promise<void>[] = [];
        let triggeredAt = -1;
        let waiting = 0;
        const check = (run: Promise<number>, expected: (run: number) => void) => {
          waiting += 1;
          checks.push(run.then(expected).finally(() => --waiting));
        };
        for (const each of steps) {
          const { begun } = task;
          const isRunning = task.isRunning();
          if (each === "join")
            check(flight.join(), (run) =>
              // A run that has ended is shared until its callers know of it.
              isRunning ? expect(run).toBe(begun) : expect([begun, begun + 1]).toContain(run),
            );
          else if (each === "next") check(flight.next(), (run) => expect(run).toBe(begun + 1));
          else if (each === "trigger") {
            flight.trigger();
            triggeredAt = begun;
          } else if (each === "end") task.end();
          else if (each === "microtask") await Promise.resolve();
          else await nextTurn();
        }
        await endAll(task, () => waiting === 0);
        await Promise.all(checks);
        expect(task.begun).toBeGreaterThan(triggeredAt);
      }),
    );
  });

  it("runs once for all that ask during a run", async () => {
    const task = createTask();
    const flight = createSingleFlight(task.start);
    const first = flight.next();
    const others = Array.from({ length: 100 }, () => {
      flight.trigger();
      return flight.next();
    });
    await endAll(task, () => task.begun === 2);
    expect(await first).toBe(1);
    expect(new Set(await Promise.all(others))).toEqual(new Set([2]));
  });

  it("fails the callers of a failed run, and no others", async () => {
    const task = createTask();
    const flight = createSingleFlight(task.start);
    const first = flight.join();
    const second = flight.next();
    task.fail();
    await expect(first).rejects.toThrow("run 1");
    task.end();
    expect(await second).toBe(2);
  });

  it("is idle at once without a run, and otherwise after the last promised one, failed or not", async () => {
    const task = createTask();
    const flight = createSingleFlight(task.start);
    await flight.idle();
    expect(task.begun).toBe(0);
    const first = flight.join();
    const second = flight.next();
    let isIdle = false;
    const idle = flight.idle().then(() => {
      isIdle = true;
    });
    task.fail();
    await expect(first).rejects.toThrow("run 1");
    await nextTurn();
    expect(isIdle).toBe(false);
    task.end();
    await idle;
    expect(await second).toBe(2);
  });

  it("begins no run for triggers after its stop, which waits for the last run", async () => {
    const task = createTask();
    const flight = createSingleFlight(task.start);
    flight.trigger();
    flight.trigger();
    let hasStopped = false;
    const stopped = flight.stop().then(() => {
      hasStopped = true;
    });
    flight.trigger();
    await nextTurn();
    expect(hasStopped).toBe(false);
    task.end();
    await stopped;
    flight.trigger();
    expect(task).toMatchObject({ begun: 1 });
  });
});

describe("a keyed single flight", () => {
  it("shares the run after the one under way among the callers of a key", async () => {
    const ends = new Map<string, Deferred<number>>();
    const begun: string[] = [];
    const flight = createKeyedSingleFlight((key: string) => {
      begun.push(key);
      const run = createDeferred<number>();
      ends.set(key, run);
      return run.promise;
    });
    const first = flight.next("a");
    const second = flight.next("a");
    expect(flight.next("a")).toBe(second);
    const other = flight.next("b");
    expect(begun).toEqual(["a", "b"]);
    ends.get("b")?.resolve(2);
    expect(await other).toBe(2);
    ends.get("a")?.reject(new Error("failed"));
    await expect(first).rejects.toThrow("failed");
    await expect.poll(() => begun).toEqual(["a", "b", "a"]);
    ends.get("a")?.resolve(1);
    expect(await second).toBe(1);
  });
});

describe("onceSuccessful", () => {
  it("shares one run and keeps its result, and forgets a failure", async () => {
    const task = createTask();
    const run = onceSuccessful(task.start);
    const failing = [run(), run()];
    task.fail();
    for (const each of failing) await expect(each).rejects.toThrow("run 1");
    const succeeding = run();
    task.end();
    expect(await succeeding).toBe(2);
    expect(await run()).toBe(2);
  });
});
