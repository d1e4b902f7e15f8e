import { expect, it } from "vitest";
import { pollWaits } from "./poll-waits.ts";

it("waits from before the last poll are read, and younger ones of payments that may have ended", () => {
  let poll = () => {};
  const waiting = new Set<string>();
  const read: (readonly string[])[] = [];
  const stop = pollWaits({
    clock: {
      setTimer(run) {
        poll = run;
        return () => {
          poll = () => {};
        };
      },
    },
    pollMs: 1_000,
    waiting: () => waiting,
    mayHaveEnded: (id) => id.startsWith("resumed"),
    onOverdue: (ids) => read.push(ids),
  });
  waiting.add("one");
  poll();
  waiting.add("two");
  poll();
  waiting.delete("one");
  poll();
  waiting.delete("two");
  poll();
  waiting.add("resumed");
  poll();
  waiting.clear();
  expect(read).toEqual([[], ["one"], ["two"], [], ["resumed"]]);
  waiting.add("three");
  stop();
  poll();
  poll();
  expect(read).toHaveLength(5);
});
