import type { AuthorizationId } from "@coinslot/protocol";
import { expect, test } from "vitest";
import { createReadingCache } from "./reading-cache.ts";

const first = idOf(1);
const second = idOf(2);
const facts = { payerHasCode: false, gasUsed: 50_000n };

test("a simulation is fresh for a while, and known until its payment is queued", () => {
  let now = 0;
  const readings = createReadingCache({ freshMs: 1_000, keepMs: 60_000, now: () => now });
  readings.remember(first, facts);
  expect(readings.isFresh(first)).toBe(true);
  now = 1_000;
  expect(readings.isFresh(first)).toBe(false);
  expect(readings.recall(first)).toMatchObject(facts);
});

test("what is older than the longest handler is dropped when another comes", () => {
  let now = 0;
  const readings = createReadingCache({ freshMs: 1_000, keepMs: 60_000, now: () => now });
  readings.remember(first, facts);
  now = 30_000;
  readings.remember(second, facts);
  now = 60_000;
  readings.remember(idOf(3), facts);
  expect(readings.recall(first)).toBeUndefined();
  expect(readings.recall(second)).toMatchObject(facts);
});

test("what a transaction carries is forgotten, and what it took is not", () => {
  const readings = createReadingCache({ freshMs: 1_000, keepMs: 60_000, now: () => 0 });
  const typicalGas = readings.typicalGas();
  readings.remember(first, facts);
  expect(readings.typicalGas()).not.toBe(typicalGas);
  readings.forget(first);
  expect(readings.isFresh(first)).toBe(false);
  expect(readings.recall(first)).toBeUndefined();
  expect(readings.typicalGas()).not.toBe(typicalGas);
});

function idOf(number: number): AuthorizationId {
  return {
    network: "eip155:9745",
    asset: "0x00000000000000000000000000000000000000aa",
    payer: "0x00000000000000000000000000000000000000bb",
    nonce: `0x${number.toString(16).padStart(64, "0")}`,
  };
}
