import { expect, it, vi } from "vitest";
import { createTrialFloor } from "./trial-floor.ts";

/**
 * A floor whose node returns these heads, one a read; `undefined`: it cannot be read. Blocks come
 * each second.
 */
function createFloor(heads: (bigint | undefined)[], { ageMs = 0 } = {}) {
  let reads = 0;
  const floor = createTrialFloor(
    async () => {
      const head = heads[Math.min(reads, heads.length - 1)];
      reads += 1;
      if (head === undefined) throw new Error("No node");
      return { number: head, ageMs };
    },
    () => 1_000,
  );
  return { floor, reads: () => reads };
}

it("any block counts before the ledger is opened anew", () => {
  const { floor, reads } = createFloor([100n]);
  floor.saw(200n);
  expect(floor.admits(1n)).toBe(true);
  expect(reads()).toBe(0);
});

it.each([
  ["a node that is level with it", 100n, 100n],
  ["a node that is 64 blocks behind it", 36n, 100n],
  ["a node that is more than 64 blocks behind it, which was of another chain", 35n, 35n],
])("the newest known block is the floor beside %s", async (_, head, expected) => {
  const { floor } = createFloor([head]);
  floor.saw(100n);
  floor.raise();
  await vi.waitFor(() => expect(floor.admits(expected)).toBe(true));
  expect(floor.admits(expected - 1n)).toBe(false);
});

it("no block counts while no head can be read, and each question reads it again", async () => {
  const { floor, reads } = createFloor([undefined, undefined, 50n]);
  floor.raise();
  expect(floor.admits(1_000n)).toBe(false);
  await vi.waitFor(() => expect(floor.admits(50n)).toBe(true));
  expect(reads()).toBeGreaterThan(2);
  expect(floor.admits(49n)).toBe(false);
});

it("a head that was read before the ledger was opened anew once more sets no floor", async () => {
  const answers: ((head: bigint) => void)[] = [];
  const readHead = () => new Promise<bigint>((resolve) => void answers.push(resolve));
  const floor = createTrialFloor(
    async () => ({ number: await readHead(), ageMs: 0 }),
    () => 1_000,
  );
  floor.raise();
  await vi.waitFor(() => expect(answers).toHaveLength(1));
  floor.raise();
  answers[0]?.(10n);
  await vi.waitFor(() => expect(answers).toHaveLength(2));
  expect(floor.admits(10n)).toBe(false);
  answers[1]?.(20n);
  await vi.waitFor(() => expect(floor.admits(20n)).toBe(true));
  expect(floor.admits(19n)).toBe(false);
});

it("a head that was made up is the floor until the node shows the true one", async () => {
  const { floor } = createFloor([2n ** 40n, 50n]);
  floor.raise();
  await vi.waitFor(() => expect(floor.admits(50n)).toBe(true));
  expect(floor.admits(49n)).toBe(false);
});

it("the old head of a node that lags is no floor", async () => {
  const { floor, reads } = createFloor([1_000n, 50n], { ageMs: 64_000 });
  floor.raise();
  await vi.waitFor(() => {
    expect(floor.admits(50n)).toBe(false);
    expect(reads()).toBeGreaterThan(5);
  });
  expect(floor.admits(1_000n)).toBe(true);
});
