import { describe, expect, it } from "vitest";
import { type PollFacts, planPoll } from "./plan-poll.ts";

/** Plasma, whose head was read as block 100 at second 1,000. */
const facts: PollFacts = {
  lookedAt: 1_000_000,
  head: 100n,
  blocks: [],
  hasOverdue: false,
  overdueSince: undefined,
  failedAt: undefined,
  blockTimeMs: 1_000,
  finalAfter: 10,
  settlingMs: 10_000,
  idleMs: 60_000,
};

function block(number: number, seenAt: number): PollFacts["blocks"][number] {
  return { number, hash: `0x${number.toString(16).padStart(64, "0")}`, seenAt };
}

describe("the next look at the chain", () => {
  it("is a minute after the last while nothing is open", () => {
    expect(planPoll(facts)).toBe(1_060_000);
  });

  it("is due once a payment's block is final, and not before", () => {
    expect(planPoll({ ...facts, blocks: [block(131, 1_031_000)] })).toBe(1_041_000);
  });

  it("follows as many blocks later as a block lacks to be final", () => {
    const blocks = [block(97, 998_000)];
    expect(planPoll({ ...facts, blocks })).toBe(1_007_000);
  });

  it("comes after each block while each block has payments", () => {
    const blocks = Array.from({ length: 10 }, (_, index) => block(91 + index, 991_000));
    expect(planPoll({ ...facts, blocks })).toBe(1_001_000);
  });

  it("comes more often the more blocks have payments", () => {
    const blocks = [block(99, 999_000), block(100, 1_000_000)];
    expect(planPoll({ ...facts, blocks })).toBe(1_005_000);
  });

  it("does not wait for a deep chain's finality, but less and less often", () => {
    const deep = { ...facts, blockTimeMs: 12_000, finalAfter: 64, blocks: [block(100, 1_000_000)] };
    expect(planPoll(deep)).toBe(1_012_000);
    expect(planPoll({ ...deep, lookedAt: 1_030_000 })).toBe(1_060_000);
    expect(planPoll({ ...deep, lookedAt: 1_200_000 })).toBe(1_260_000);
  });

  it("is due after ten seconds where a submitted payment waits for its end", () => {
    expect(planPoll({ ...facts, hasOverdue: true })).toBe(1_010_000);
  });

  it("follows after a block where a queued payment is past its time, and later where blocks do not end it", () => {
    const { lookedAt } = facts;
    const planned = (overdueSince: number) => planPoll({ ...facts, overdueSince });
    expect(planned(lookedAt + 500)).toBe(lookedAt + 1_000);
    expect(planned(lookedAt)).toBe(lookedAt + 1_000);
    expect(planned(lookedAt - 5_000)).toBe(lookedAt + 5_000);
    expect(planned(lookedAt - 30_000)).toBe(lookedAt + 10_000);
  });

  it("comes less and less often for a failed payment that may never expire", () => {
    const { lookedAt } = facts;
    const planned = (failedAt: number) => planPoll({ ...facts, failedAt });
    expect(planned(lookedAt + 1_000)).toBe(lookedAt + 10_000);
    expect(planned(lookedAt - 10_000)).toBe(lookedAt + 10_000);
    expect(planned(lookedAt - 30_000)).toBe(lookedAt + 30_000);
    expect(planned(lookedAt - 3_600_000)).toBe(lookedAt + 60_000);
  });
});
