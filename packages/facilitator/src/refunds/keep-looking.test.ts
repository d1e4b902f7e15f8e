import type { Clock } from "@coinslot/chain";
import { expect, it } from "vitest";
import { keepLooking } from "./keep-looking.ts";

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

function look(pauses: (number | undefined)[]) {
  const hand = createHandClock();
  let count = 0;
  const looking = keepLooking(hand.clock, async () => {
    const pauseMs = pauses[count];
    count += 1;
    return pauseMs;
  });
  return { ...hand, looking, count: () => count };
}

it("looks again after each pause, and not at all where none is due", async () => {
  const { delays, fire, count, looking } = look([5_000, 200, undefined]);
  await expect.poll(delays).toEqual([5_000]);
  fire();
  await expect.poll(delays).toEqual([200]);
  fire();
  await expect.poll(count).toBe(3);
  await looking.stop();
  expect(delays()).toEqual([]);
});

it("looks when it is woken, and has one timer afterwards", async () => {
  const { delays, looking, count } = look([5_000, 5_000, 5_000]);
  await expect.poll(delays).toEqual([5_000]);
  looking.wakeIn(200);
  expect(delays()).toEqual([5_000, 200]);
  looking.wake();
  await expect.poll(count).toBe(2);
  await expect.poll(delays).toEqual([5_000]);
  await looking.stop();
  expect(delays()).toEqual([]);
});
