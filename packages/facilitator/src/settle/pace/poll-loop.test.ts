import type { Clock } from "@coinslot/chain";
import { expect, it } from "vitest";
import { startPollLoop } from "./poll-loop.ts";

/** Timers in the hands of a test. */
function createHandClock() {
  const timers = new Set<{ run: () => void; delayMs: number }>();
  const clock: Clock = {
    now: () => 0,
    setTimer(run, delayMs) {
      const timer = { run, delayMs };
      timers.add(timer);
      return () => timers.delete(timer);
    },
  };
  return {
    clock,
    delays: () => [...timers].map(({ delayMs }) => delayMs),
    fire() {
      for (const timer of [...timers]) {
        timers.delete(timer);
        timer.run();
      }
    },
  };
}

function startTestLoop(pauses: (number | undefined)[]) {
  const hand = createHandClock();
  let count = 0;
  const polling = startPollLoop(hand.clock, async () => {
    const pauseMs = pauses[count];
    count += 1;
    return pauseMs;
  });
  return { ...hand, polling, count: () => count };
}

it("a poll loop polls again after each pause, and not at all where none is due", async () => {
  const { delays, fire, count, polling } = startTestLoop([5_000, 200, undefined]);
  await expect.poll(delays).toEqual([5_000]);
  fire();
  await expect.poll(delays).toEqual([200]);
  fire();
  await expect.poll(count).toBe(3);
  await polling.stop();
  expect(delays()).toEqual([]);
});

it("a poll loop polls when it is woken, and has one timer afterwards", async () => {
  const { delays, polling, count } = startTestLoop([5_000, 5_000, 5_000]);
  await expect.poll(delays).toEqual([5_000]);
  polling.wakeIn(200);
  expect(delays()).toEqual([5_000, 200]);
  polling.wake();
  await expect.poll(count).toBe(2);
  await expect.poll(delays).toEqual([5_000]);
  await polling.stop();
  expect(delays()).toEqual([]);
});
