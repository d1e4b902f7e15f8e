import { describe, expect, it } from "vitest";
import { createBlockPace } from "./block-pace.ts";

/** A pace on a clock that the test sets. */
function observe(usualMs?: number) {
  let time = 1_000;
  const pace = createBlockPace({ usualMs, now: () => time });
  return {
    pace,
    /** A block is seen at this time. */
    see(number: number, at: number) {
      time = at;
      pace.saw(number);
    },
    /** Time from the last sighting to the next block. */
    untilDue: () => (pace.dueAt() ?? Number.NaN) - time,
  };
}

describe("the pace of blocks", () => {
  it("is unknown before two blocks were seen, or the usual one", () => {
    const unknown = observe();
    unknown.see(1, 5_000);
    expect([unknown.pace.blockMs(), unknown.pace.dueAt()]).toEqual([undefined, undefined]);
    unknown.see(2, 17_000);
    expect(unknown.pace.blockMs()).toBe(12_000);
    expect(unknown.pace.dueAt()).toBe(29_000);

    const known = observe(2_000);
    expect([known.pace.blockMs(), known.pace.dueAt()]).toEqual([2_000, undefined]);
    known.see(1, 5_000);
    expect(known.pace.dueAt()).toBe(7_000);
  });

  it.each([250, 1_000, 2_000, 12_000])("finds blocks of %i ms in polls of 500 ms", (blockMs) => {
    const { pace, see } = observe(1_000);
    const polls = Math.ceil((200 * blockMs) / 500);
    for (let poll = 0; poll < polls; poll += 1) {
      // Requests take time, so polls drift over the blocks.
      const at = poll * 507;
      see(Math.floor(at / blockMs), at);
    }
    expect(pace.blockMs()).toBeGreaterThan(0.98 * blockMs);
    expect(pace.blockMs()).toBeLessThan(1.02 * blockMs);
  });

  it("knows the next block to a tenth where each is seen soon", () => {
    const { see, untilDue } = observe(1_000);
    for (let number = 0; number < 200; number += 1) {
      see(number, number * 250 + ((number * 7) % 20));
      if (number < 20) continue;
      expect(untilDue()).toBeGreaterThan(210);
      expect(untilDue()).toBeLessThanOrEqual(252);
    }
  });

  it("keeps its pace over a stop, and over the burst behind it", () => {
    const { pace, see } = observe(1_000);
    for (let number = 0; number <= 64; number += 1) see(number, number * 1_000);
    see(65, 164_000);
    expect(pace.blockMs()).toBeLessThan(1_060);
    expect(pace.dueAt()).toBeGreaterThan(165_000);
    see(125, 164_010);
    expect(pace.blockMs()).toBeGreaterThan(300);
    for (let number = 126; number < 200; number += 1) see(number, 164_010 + (number - 125) * 1_000);
    expect(pace.blockMs()).toBeCloseTo(1_000, -2);
  });

  it("is that of a slower chain after two long waits", () => {
    const { pace, see } = observe(1_000);
    for (let number = 0; number <= 64; number += 1) see(number, number * 20);
    expect(pace.blockMs()).toBeCloseTo(20);
    see(65, 13_280);
    see(66, 25_280);
    expect(pace.blockMs()).toBeCloseTo(12_000);
    expect(pace.dueAt()).toBeCloseTo(37_280);
  });

  it("moves its grid after an empty slot", () => {
    const { pace, see } = observe(12_000);
    for (let number = 0; number <= 20; number += 1) see(number, number * 12_000);
    see(21, 22 * 12_000);
    expect(pace.dueAt()).toBeGreaterThan(22.9 * 12_000);
    see(22, 23 * 12_000);
    expect(pace.dueAt()).toBeGreaterThan(23.9 * 12_000);
  });

  it("takes no older height for a new block, and begins anew on another chain", () => {
    const { pace, see } = observe(1_000);
    for (let number = 100; number <= 200; number += 1) see(number, number * 1_000);
    see(190, 200_400);
    expect(pace.dueAt()).toBe(201_000);
    see(3, 200_500);
    expect(pace.dueAt()).toBe(201_500);
    see(4, 201_500);
    expect(pace.blockMs()).toBe(1_000);
  });
});
