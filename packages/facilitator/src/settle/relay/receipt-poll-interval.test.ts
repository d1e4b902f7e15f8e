import { describe, expect, it } from "vitest";
import { createBlockClock } from "../block-clock.ts";
import { createReceiptPollInterval } from "./receipt-poll-interval.ts";

/** Blocks of which nothing is known but their usual time. */
function blocksOf(blockTimeMs: number) {
  return { blockTimeMs: () => blockTimeMs, msToBlock: () => undefined };
}

describe("the receipt poll interval of a fast chain", () => {
  /**
   * Sends transactions that are mined after this time; returns the times of the last one's polls.
   */
  function follow(afterMs: number, { times, maxMs = 500 }: { times: number; maxMs?: number }) {
    const pace = createReceiptPollInterval({ maxMs, blocks: blocksOf(200) });
    let looks: number[] = [];
    for (let time = 0; time < times; time += 1) {
      let now = pace.first();
      looks = [now];
      while (now < afterMs) {
        now += pace.next();
        looks.push(now);
      }
      pace.found(now);
    }
    return looks;
  }

  it("is zero for a new transaction, and grows with its age", () => {
    expect(follow(60, { times: 1 })).toEqual([2, 4, 8, 16, 32, 64]);
  });

  it("adapts to the time of an inclusion, for fewer polls", () => {
    expect(follow(12, { times: 50 }).length).toBeLessThanOrEqual(3);
    expect(follow(3, { times: 50 }).length).toBeLessThanOrEqual(2);
  });

  it("stays within its maximum", () => {
    const looks = follow(1_000, { times: 20, maxMs: 10 });
    for (const [index, look] of looks.entries()) {
      expect(look - (looks[index - 1] ?? 0)).toBeLessThanOrEqual(10);
    }
  });
});

describe("the receipt poll interval of a chain with a block a second", () => {
  /**
   * Sends a transaction every 7.3 s on a chain whose blocks can be seen 230 ms after their second.
   * Its head is read every 10 s. Returns the polls of each, and how late it was found.
   */
  function follow({ times, isKnown }: { times: number; isKnown: boolean }) {
    const shownMs = 230;
    let now = 1_700_000_000_000;
    const clock = createBlockClock({ blockTimeMs: 1_000, now: () => now });
    const pace = createReceiptPollInterval({
      maxMs: 500,
      blocks: isKnown ? clock : blocksOf(1_000),
    });
    const sent: { polls: number; lateMs: number }[] = [];
    for (let time = 0; time < times; time += 1) {
      now += 7_300;
      const newest = Math.floor((now - shownMs) / 1_000);
      clock.saw({ number: BigInt(newest), timestamp: BigInt(newest) });
      const shownAt = (newest + 1) * 1_000 + shownMs;
      const sentAt = now;
      let polls = 1;
      for (now += pace.first(); now < shownAt; now += pace.next()) polls += 1;
      pace.found(now - sentAt);
      sent.push({ polls, lateMs: now - shownAt });
    }
    return sent;
  }

  function mean(values: readonly number[]): number {
    return values.reduce((sum, value) => sum + value, 0) / values.length;
  }

  it("costs little more than one poll a transaction where the chain's time is known", () => {
    const sent = follow({ times: 80, isKnown: true }).slice(40);
    expect(mean(sent.map(({ polls }) => polls))).toBeLessThanOrEqual(1.5);
    expect(mean(sent.map(({ lateMs }) => lateMs))).toBeLessThanOrEqual(120);
  });

  it("costs at most three polls, and less than half a block, where it is not", () => {
    const sent = follow({ times: 80, isKnown: false }).slice(40);
    expect(mean(sent.map(({ polls }) => polls))).toBeLessThanOrEqual(3);
    expect(mean(sent.map(({ lateMs }) => lateMs))).toBeLessThanOrEqual(400);
  });

  it("becomes that of a fast chain again once transactions are included at once", () => {
    const pace = createReceiptPollInterval({ maxMs: 500, blocks: blocksOf(1_000) });
    for (let time = 0; time < 20; time += 1) {
      pace.first();
      pace.found(500);
    }
    const firsts = Array.from({ length: 9 }, () => {
      const first = pace.first();
      pace.found(first);
      return first;
    });
    expect(firsts.at(-1)).toBeLessThanOrEqual(16);
  });
});
