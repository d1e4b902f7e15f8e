import { describe, expect, it } from "vitest";
import { createBlockPace } from "../pace/block-pace.ts";
import { followUpAt } from "./follow-up.ts";

const [transactionGas, paymentGas] = [26_000, 46_000];
const maxPayments = 64;
const dispatchMs = 10;
/** Time after which this process sees a block. */
const seenAfterMs = 8;

/** Numbers from 0 to 1, the same in each run. */
function randomNumbers(): () => number {
  let state = 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

interface World {
  /** Times of the blocks, ascending. */
  blocks: readonly number[];
  /** Payments a second, at random times. */
  rate: number;
  usualMs?: number;
  /** False: while a transaction waits, only a full one follows. */
  follows?: boolean;
}

/** Lives through these blocks, millisecond by millisecond, as a planner with one relayer does. */
function live({ blocks, rate, usualMs, follows = true }: World) {
  const random = randomNumbers();
  let now = 0;
  const pace = createBlockPace({ usualMs, now: () => now });
  const waits: number[] = [];
  let queue: number[] = [];
  let flight: { at: number; payments: number[]; includedAt?: number }[] = [];
  let [transactions, maxInFlight] = [0, 0];
  let nextPayment = 0;
  let block = 0;

  function plan() {
    const [oldest, newest] = [flight[0]?.at, flight.at(-1)?.at];
    const isFollowUp =
      follows &&
      oldest !== undefined &&
      newest !== undefined &&
      followUpAt({ pace, flight: { oldestAt: oldest, newestAt: newest }, dispatchMs, now }) <= now;
    while (
      queue.length >= maxPayments ||
      (queue.length > 0 && (flight.length === 0 || isFollowUp))
    ) {
      flight.push({ at: now, payments: queue.slice(0, maxPayments) });
      queue = queue.slice(maxPayments);
      transactions += 1;
    }
    maxInFlight = Math.max(maxInFlight, flight.length);
  }

  const endsAt = (blocks.at(-1) ?? 0) - 1;
  for (; now < endsAt; now += 1) {
    for (; nextPayment <= now; nextPayment += (-Math.log(random()) / rate) * 1000) queue.push(now);
    const minedAt = blocks[block] ?? Number.POSITIVE_INFINITY;
    if (now >= minedAt) {
      for (const each of flight) {
        if (each.at + dispatchMs <= minedAt) each.includedAt ??= minedAt;
      }
    }
    if (now >= minedAt + seenAfterMs) {
      block += 1;
      pace.saw(block);
      for (const each of flight) {
        if (each.includedAt === undefined) continue;
        for (const at of each.payments) waits.push(now - at);
      }
      flight = flight.filter(({ includedAt }) => includedAt === undefined);
    }
    plan();
  }
  waits.sort((a, b) => a - b);
  return {
    p50: waits[Math.floor(waits.length * 0.5)] ?? Number.NaN,
    p99: waits[Math.floor(waits.length * 0.99)] ?? Number.NaN,
    gas: paymentGas + (transactions * transactionGas) / waits.length,
    transactions,
    maxInFlight,
  };
}

function regular(blockMs: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => 100 + index * blockMs);
}

const paces = [250, 1_000, 2_000, 12_000];
const rates = [0.5, 5, 50];

describe("payments that wait behind a transaction", () => {
  it.each(paces.flatMap((blockMs) => rates.map((rate) => ({ blockMs, rate }))))(
    "make the next block of $blockMs ms at $rate a second",
    ({ blockMs, rate }) => {
      const blocks = regular(blockMs, Math.max(200, Math.ceil(300_000 / blockMs)));
      const { p50, p99, gas } = live({ blocks, rate, usualMs: 1_000 });
      expect(p50).toBeLessThan(0.7 * blockMs);
      expect(p99).toBeLessThan(1.3 * blockMs);
      if (rate < 50) return;
      const gathered = live({ blocks, rate, usualMs: 1_000, follows: false });
      expect(gas / gathered.gas).toBeLessThan(1.1);
    },
  );

  it("make the next block where the usual pace is wrong, or unknown", () => {
    for (const usualMs of [250, 2_000, undefined]) {
      const world = { blocks: regular(1_000, 300), rate: 5, ...(usualMs && { usualMs }) };
      expect(live(world).p99).toBeLessThan(1_400);
    }
  });

  it("make the next block of a chain that is twelve times slower than its usual pace", () => {
    const { p50, p99 } = live({ blocks: regular(12_000, 13), rate: 5, usualMs: 1_000 });
    expect(p50).toBeLessThan(0.7 * 12_000);
    expect(p99).toBeLessThan(1.3 * 12_000);
  });

  it("wait little longer for irregular blocks than those that are sent at once", () => {
    const random = randomNumbers();
    let at = 0;
    const blocks = Array.from({ length: 1_000 }, () => {
      at += 1_000 * (0.5 + random());
      return at;
    });
    const { p50, gas } = live({ blocks, rate: 50, usualMs: 1_000 });
    expect(p50).toBeLessThan(800);
    const gathered = live({ blocks, rate: 50, usualMs: 1_000, follows: false });
    expect(gas / gathered.gas).toBeLessThan(1.1);
  });

  it("gather while the chain stops, so that few transactions wait for its next block", () => {
    const before = regular(1_000, 100);
    const blocks = [...before, 220_000, ...regular(1_000, 60).map((each) => 221_000 + each)];
    expect(live({ blocks, rate: 0.5, usualMs: 1_000 }).maxInFlight).toBeLessThanOrEqual(7);
  });

  it("gather on a chain that mines at once", () => {
    const blocks = regular(30, 5_000);
    const { transactions } = live({ blocks, rate: 200, usualMs: 1_000 });
    const gathered = live({ blocks, rate: 200, usualMs: 1_000, follows: false });
    expect(transactions).toBeLessThan(1.02 * gathered.transactions);
  });
});

describe("the time of a further transaction", () => {
  const flight = { oldestAt: 10_000, newestAt: 10_000 };

  function paceOf(blockMs: number | undefined, dueAt: number | undefined) {
    return { saw: () => undefined, blockMs: () => blockMs, dueAt: () => dueAt };
  }

  it("never comes where the pace is unknown, or blocks come at once", () => {
    const options = { flight, dispatchMs: 10, now: 10_500 };
    for (const pace of [paceOf(undefined, undefined), paceOf(99, 10_400)]) {
      expect(followUpAt({ ...options, pace })).toBe(Number.POSITIVE_INFINITY);
    }
  });

  it("leaves a transaction the time to its node, and at most a quarter of a block", () => {
    const options = { pace: paceOf(1_000, 10_900), flight, now: 10_100 };
    expect(followUpAt({ ...options, dispatchMs: 50 })).toBe(10_750);
    expect(followUpAt({ ...options, dispatchMs: 5_000 })).toBe(10_650);
  });

  /** Time after 10 s, at which the first transaction left for the block that was due. */
  function after10s(options: { now: number; newestAt: number; dueAt?: number }): number {
    const pace = paceOf(1_000, options.dueAt ?? 10_000);
    const flight = { oldestAt: 10_000, newestAt: options.newestAt };
    return followUpAt({ pace, flight, dispatchMs: 0, now: options.now });
  }

  it("comes each quarter of a late block, and after two blocks as the silence doubles", () => {
    expect(after10s({ now: 10_100, newestAt: 10_000 })).toBe(10_250);
    expect(after10s({ now: 10_300, newestAt: 10_250 })).toBe(10_500);
    expect(after10s({ now: 11_800, newestAt: 11_750 })).toBe(12_000);
    expect(after10s({ now: 12_100, newestAt: 12_000 })).toBe(14_000);
    expect(after10s({ now: 17_000, newestAt: 14_000 })).toBe(18_000);
  });

  it("never comes after 15 seconds without a block", () => {
    expect(after10s({ now: 24_999, newestAt: 14_000 })).toBe(18_000);
    expect(after10s({ now: 25_001, newestAt: 14_000 })).toBe(Number.POSITIVE_INFINITY);
    expect(after10s({ now: 18_001, newestAt: 18_000 })).toBe(Number.POSITIVE_INFINITY);
  });

  it("never comes where the oldest transaction has missed two blocks", () => {
    const seen = { newestAt: 11_500, dueAt: 11_900 };
    expect(after10s({ ...seen, now: 11_600 })).toBe(11_800);
    expect(after10s({ ...seen, now: 12_001 })).toBe(Number.POSITIVE_INFINITY);
    expect(after10s({ ...seen, dueAt: 12_900, now: 11_950 })).toBe(Number.POSITIVE_INFINITY);
  });
});
