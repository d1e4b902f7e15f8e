import type { Clock } from "@coinslot/chain";
import { describe, expect, it } from "vitest";
import { createReadPace } from "./read-pace.ts";

/** A pace on a clock whose timers fire at once, each with its time. */
function createScene({ hasBuyers = true } = {}) {
  let now = 5_000;
  const pauses: number[] = [];
  const pass = (ms: number) => {
    now += ms;
  };
  const clock: Clock = {
    now: () => now,
    setTimer(run, delayMs) {
      pauses.push(delayMs);
      pass(delayMs);
      queueMicrotask(run);
      return () => undefined;
    },
  };
  const pace = createReadPace(clock);
  return {
    pauses,
    pace,
    now: () => now,
    pass,
    read(tookMs: number) {
      const buy = () => hasBuyers && pace.giveWay();
      buy();
      return pace.run(async () => {
        buy();
        pass(tookMs);
      });
    },
  };
}

describe("the pace of reads", () => {
  it("gives a fiftieth of the time to reads beside buyers", async () => {
    const { read, now } = createScene();
    const began = now();
    for (let page = 0; page < 1_000; page += 1) await read(20);
    // 1,000 reads of 20 ms, but for the burst at the beginning.
    expect(now() - began).toBeGreaterThanOrEqual(1_000_000 - 7_000);
    expect(now() - began).toBeLessThanOrEqual(1_000_000);
  });

  it("gives all the time where no buyer came for a second", async () => {
    const { pace, read, pauses } = createScene({ hasBuyers: false });
    for (let page = 0; page < 1_000; page += 1) await read(20);
    expect(pauses).toEqual([]);
    pace.giveWay();
    await read(1_000);
    for (let page = 0; page < 100; page += 1) await read(20);
    expect(pauses).toEqual([]);
  });

  it("lets pages go at once again after a rest", async () => {
    const { read, pass, pauses } = createScene();
    for (let page = 0; page < 7; page += 1) await read(20);
    expect(pauses).toHaveLength(1);
    pass(60_000);
    for (let page = 0; page < 6; page += 1) await read(20);
    expect(pauses).toHaveLength(1);
  });

  it("waits two seconds at most, however long and many reads are", async () => {
    const { read, pauses } = createScene();
    for (let page = 0; page < 20; page += 1) await read(4_000);
    await Promise.all(Array.from({ length: 50 }, () => read(4_000)));
    await read(20);
    expect(pauses.length).toBeGreaterThan(20);
    expect(Math.max(...pauses)).toBe(2_000);
  });

  it("counts reads that fail, and rejects as they do", async () => {
    const { pace, pass, read, pauses } = createScene();
    for (let page = 0; page < 5; page += 1) await read(20);
    const failing = pace.run(async () => {
      pass(20);
      throw new Error("canceling statement");
    });
    await expect(failing).rejects.toThrow("canceling statement");
    await read(20);
    expect(pauses).toEqual([880]);
  });

  it("lets those who wait read when it closes", async () => {
    let now = 0;
    const pace = createReadPace({ now: () => now, setTimer: () => () => undefined });
    const readLong = async () => {
      now += 100;
    };
    for (let page = 0; page < 2; page += 1) {
      pace.giveWay();
      await pace.run(readLong);
    }
    pace.giveWay();
    const waiting = pace.run(async () => "read");
    pace.close();
    expect(await waiting).toBe("read");
    expect(await pace.run(async () => "at once")).toBe("at once");
  });
});
