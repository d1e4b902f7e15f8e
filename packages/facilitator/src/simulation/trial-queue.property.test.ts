import fc from "fast-check";
import { expect, test } from "vitest";
import type { Claim } from "../schemes/scheme.ts";
import { createTrialQueue, type WaitingTrial } from "./trial-queue.ts";

const network = "eip155:9745";
const asset = "0x00000000000000000000000000000000000a55e7";

/** A trial in the line of a caller's payer, or of the plan's. */
interface Place {
  caller: number | "plan";
  payer: number;
  isGone: boolean;
}

const places = fc.array(
  fc.record({
    caller: fc.oneof(fc.constant("plan" as const), fc.nat(3)),
    payer: fc.nat(2),
    isGone: fc.boolean(),
  }),
  { maxLength: 60 },
);

function trialOf({ caller, payer, isGone }: Place, index: number): WaitingTrial {
  const from = `0x${payer.toString(16).padStart(40, "0")}` as const;
  const nonce = `0x${index.toString(16).padStart(64, "0")}` as const;
  const transfer: Claim = {
    kind: "eip3009",
    id: { network, asset, payer: from, nonce },
    authorization: { from, to: asset, value: 1n, validAfter: 0n, validBefore: 1n, nonce },
    signature: `0x${"11".repeat(65)}`,
  };
  const wait = { mayWait: () => true, isGone: () => isGone };
  return {
    transfer,
    caller: caller === "plan" ? undefined : { limitKey: `caller ${caller}`, wait },
    resolve() {},
    reject() {},
  };
}

/** Each trial once, by its line; and no caller gets ahead. */
function expectFairOrder(list: readonly Place[], maxTransfers: number): void {
  const queue = createTrialQueue();
  const trials = list.map(trialOf);
  const indexOf = new Map(trials.map((trial, index) => [trial, index]));
  for (const trial of trials) queue.add(trial);
  const dropped: number[] = [];
  const taken: number[] = [];
  while (!queue.isEmpty()) {
    const some = queue.take(maxTransfers, (trial) => dropped.push(indexOf.get(trial) ?? -1));
    expect(some.length).toBeLessThanOrEqual(maxTransfers);
    taken.push(...some.map((trial) => indexOf.get(trial) ?? -1));
  }
  const isDropped = ({ caller, isGone }: Place) => isGone && caller !== "plan";
  const indexes = list.map((_, index) => index);
  expect(dropped.sort((a, b) => a - b)).toEqual(indexes.filter((index) => isDropped(at(index))));
  expect([...taken].sort((a, b) => a - b)).toEqual(
    indexes.filter((index) => !isDropped(at(index))),
  );
  expectFifo(taken);
  expectTurns(taken.filter((index) => at(index).caller !== "plan"));

  function at(index: number): Place {
    const place = list[index];
    if (place === undefined) throw new RangeError(`No trial ${index}`);
    return place;
  }

  /** The trials of one payer through one caller keep their order. */
  function expectFifo(order: readonly number[]): void {
    const last = new Map<string, number>();
    for (const index of order) {
      const { caller, payer } = at(index);
      expect(index).toBeGreaterThan(last.get(`${caller} ${payer}`) ?? -1);
      last.set(`${caller} ${payer}`, index);
    }
  }

  /** No caller is two turns ahead of another that still has a trial. */
  function expectTurns(order: readonly number[]): void {
    const left = new Map<unknown, number>();
    for (const index of order) {
      left.set(at(index).caller, (left.get(at(index).caller) ?? 0) + 1);
    }
    const turns = new Map<unknown, number>();
    for (const index of order) {
      const { caller } = at(index);
      turns.set(caller, (turns.get(caller) ?? 0) + 1);
      left.set(caller, (left.get(caller) ?? 0) - 1);
      for (const [other, rest] of left) {
        if (rest === 0) continue;
        expect((turns.get(caller) ?? 0) - (turns.get(other) ?? 0)).toBeLessThanOrEqual(1);
      }
    }
  }
}

test("Each waiting trial comes once, in the order of its line, and callers take turns.", () => {
  fc.assert(fc.property(places, fc.integer({ min: 1, max: 8 }), expectFairOrder));
});
