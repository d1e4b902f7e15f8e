import { expect, it } from "vitest";
import { createBlockClock } from "./block-clock.ts";

/** A clock of blocks, and the time that it goes by. */
function setUp(blockTimeMs: number | undefined) {
  const time = { now: 1_700_000_000_000 };
  const blocks = createBlockClock({ blockTimeMs, now: () => time.now });
  return { time, blocks };
}

const second = 1_700_000_000n;

it("the next block of a regular chain is expected as late after its second as an earlier one", () => {
  const { time, blocks } = setUp(1_000);
  time.now += 900;
  blocks.saw({ number: 1n, timestamp: second });
  time.now += 60_000 - 700;
  blocks.saw({ number: 61n, timestamp: second + 60n });
  time.now += 50;
  expect(blocks.msToBlock()).toBe(950);
});

it("a block that is shown again later says nothing about its time", () => {
  const { time, blocks } = setUp(1_000);
  blocks.saw({ number: 1n, timestamp: second });
  time.now += 5_000;
  blocks.saw({ number: 1n, timestamp: second });
  expect(blocks.blockTimeMs()).toBe(1_000);
});

it("no time is expected of a chain whose blocks last less than its timestamps tell", () => {
  const { blocks } = setUp(700);
  blocks.saw({ number: 1n, timestamp: second });
  expect(blocks.msToBlock()).toBeUndefined();
});

it("blocks that come faster than usual shorten the block time, and slower ones do not lengthen it", () => {
  const { time, blocks } = setUp(1_000);
  for (let number = 1n; number < 20n; number += 1n) {
    blocks.saw({ number, timestamp: second });
    time.now += 10;
  }
  expect(blocks.blockTimeMs()).toBeLessThan(30);
  expect(blocks.msToBlock()).toBeUndefined();
  for (let number = 20n; number < 40n; number += 1n) {
    time.now += 60_000;
    blocks.saw({ number, timestamp: second });
  }
  expect(blocks.blockTimeMs()).toBeGreaterThan(900);
  expect(blocks.blockTimeMs()).toBeLessThanOrEqual(1_000);
});

it("a block that never was, far above the chain, is forgotten with the next true one", () => {
  const { time, blocks } = setUp(1_000);
  blocks.saw({ number: 1n, timestamp: second });
  time.now += 8_000;
  blocks.saw({ number: 1_000_000n, timestamp: 1n });
  expect(blocks.blockTimeMs()).toBeLessThan(1);
  time.now += 1_000;
  blocks.saw({ number: 10n, timestamp: second + 9n });
  expect(blocks.blockTimeMs()).toBe(1_000);
});
