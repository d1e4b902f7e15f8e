import { setImmediate as nextTurn } from "node:timers/promises";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createMutex } from "./mutex.ts";
import { createDeferred } from "./testing/deferred.ts";

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ type: fc.constant("enter" as const), isAborted: fc.boolean() }),
  },
  { weight: 3, arbitrary: fc.record({ type: fc.constant("leave" as const), fails: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("abort" as const), which: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("microtask" as const) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("turn" as const) }) },
);

describe("a mutex", () => {
  it("runs one caller at a time, in their order, although some fail or stop waiting", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60, size: "max" }), async (steps) => {
        const mutex = createMutex();
        const begun: number[] = [];
        const callers: { abort: AbortController; wasAborted: boolean; outcome: Promise<string> }[] =
          [];
        let current: ReturnType<typeof createDeferred<string>> | undefined;
        let isOver = false;

        function enter(isAborted: boolean): void {
          const id = callers.length;
          const abort = new AbortController();
          if (isAborted) abort.abort("gave up");
          const work = () => {
            expect(current).toBeUndefined();
            begun.push(id);
            const run = createDeferred<string>();
            current = run;
            if (isOver) leave(false);
            return run.promise;
          };
          const outcome = mutex.run(work, abort.signal).catch(String);
          callers.push({ abort, wasAborted: isAborted, outcome });
        }

        function leave(fails: boolean): void {
          const run = current;
          current = undefined;
          if (fails) run?.reject("failed");
          else run?.resolve("done");
        }

        for (const each of steps) {
          if (each.type === "enter") enter(each.isAborted);
          else if (each.type === "leave") leave(each.fails);
          else if (each.type === "turn") await nextTurn();
          else if (each.type === "microtask") await Promise.resolve();
          else {
            const caller = callers[each.which % (callers.length || 1)];
            // An abort after the beginning is the work's own affair.
            if (caller === undefined || begun.includes(callers.indexOf(caller))) continue;
            caller.abort.abort("gave up");
            caller.wasAborted = true;
          }
        }
        isOver = true;
        leave(false);
        const outcomes = await Promise.all(callers.map(({ outcome }) => outcome));

        expect(begun).toEqual([...begun].sort((a, b) => a - b));
        for (const [id, { wasAborted }] of callers.entries()) {
          if (outcomes[id] === "gave up") expect(wasAborted && !begun.includes(id)).toBe(true);
          else expect(begun).toContain(id);
        }
        const last = mutex.run(async () => "free", AbortSignal.timeout(10_000));
        expect(await last).toBe("free");
      }),
    );
  });

  it("is handed over, so that a caller that comes at the release waits", async () => {
    const mutex = createMutex();
    const release = await mutex.acquire();
    const second = mutex.acquire();
    release();
    let isThirdIn = false;
    const third = mutex.acquire().then(() => {
      isThirdIn = true;
    });
    const releaseSecond = await second;
    await nextTurn();
    expect(isThirdIn).toBe(false);
    releaseSecond();
    await third;
  });

  it("ends a wait that takes too long, and goes on with the others", async () => {
    const error = new Error("busy");
    const mutex = createMutex({ timeoutMs: 20, timeoutError: () => error });
    const release = await mutex.acquire();
    await expect(mutex.acquire()).rejects.toBe(error);
    const next = mutex.run(async () => "next");
    release();
    expect(await next).toBe("next");
  });

  it("names a time limit in its own error unless it is given one", async () => {
    const mutex = createMutex({ timeoutMs: 1 });
    await mutex.acquire();
    await expect(mutex.acquire()).rejects.toMatchObject({ name: "TimeoutError" });
  });
});
