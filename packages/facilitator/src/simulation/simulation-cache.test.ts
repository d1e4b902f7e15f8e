import type { Hex } from "@coinslot/protocol";
import { expect, test } from "vitest";
import { defaultCodePayerLimits } from "../ledger/ledger-limits.ts";
import type { Claim } from "../schemes/scheme.ts";
import { createSimulationCache } from "./simulation-cache.ts";

const times = { freshMs: 1_000, keepMs: 60_000, callGasOf: () => 300_000n };
const first = transferOf(1);
const second = transferOf(2);
const facts = { payerHasCode: false, gasUsed: 50_000n };

test("a simulation is recalled while it is fresh, whatever is added meanwhile", () => {
  let now = 0;
  const simulationCache = createSimulationCache({ ...times, now: () => now });
  simulationCache.remember(first, facts);
  now = 999;
  simulationCache.remember(second, facts);
  expect(simulationCache.recall(first)).toMatchObject(facts);
  now = 1_000;
  expect(simulationCache.recall(first)).toBeUndefined();
  simulationCache.remember(transferOf(3), facts);
  expect(simulationCache.recall(second)).toMatchObject(facts);
});

test("a simulation is dropped once a transaction carries its payment, and its gas is kept", () => {
  const simulationCache = createSimulationCache({ ...times, now: () => 0 });
  const typicalGas = simulationCache.typicalGas();
  simulationCache.remember(first, facts);
  expect(simulationCache.typicalGas()).not.toBe(typicalGas);
  simulationCache.forget(first);
  expect(simulationCache.recall(first)).toBeUndefined();
  expect(simulationCache.typicalGas()).not.toBe(typicalGas);
});

test("a simulation does not apply to another authorization with the same nonce", () => {
  const simulationCache = createSimulationCache({ ...times, now: () => 0 });
  simulationCache.remember(first, facts);
  const { authorization } = first;
  const others: Claim[] = [
    { ...first, authorization: { ...authorization, value: 2n } },
    { ...first, authorization: { ...authorization, to: second.id.asset } },
    { ...first, authorization: { ...authorization, validBefore: 3n } },
    { ...first, signature: `0x${"22".repeat(100)}` },
    { ...first, id: { ...first.id, network: "eip155:988" } },
  ];
  for (const other of others) {
    expect(simulationCache.recall(other)).toBeUndefined();
  }
});

test("a simulation of another process counts from the time at which that one made it", () => {
  let now = 0;
  const there = createSimulationCache({ ...times, now: () => now });
  there.remember(first, { ...facts, gasUsed: 400_000n });
  now = 999;
  const shared = there.share(first);
  if (shared === undefined) throw new Error("It is not shared");
  expect(shared).toMatchObject({ gasUsed: 300_000n, at: 0 });
  let hereNow = 5_000;
  const here = createSimulationCache({ ...times, now: () => hereNow });
  here.learn(first.id.network, { ...shared, at: 4_700 });
  expect(here.recall(first)).toMatchObject({ payerHasCode: false, gasUsed: 300_000n });
  const signedAnew: Claim = { ...first, signature: `0x${"22".repeat(65)}` };
  for (const other of [second, signedAnew]) expect(here.recall(other)).toBeUndefined();
  expect(here.share(first)).toBeUndefined();
  hereNow = 5_700;
  expect(here.recall(first)).toBeUndefined();
  now = 1_000;
  expect(there.share(first)).toBeUndefined();
});

test("a simulation of another process is dropped once a transaction carries its payment", () => {
  const there = createSimulationCache({ ...times, now: () => 0 });
  there.remember(first, facts);
  const here = createSimulationCache({ ...times, now: () => 0 });
  const shared = there.share(first);
  if (shared !== undefined) here.learn(first.id.network, shared);
  expect(here.recall(first)).toBeDefined();
  here.forget(first);
  expect(here.recall(first)).toBeUndefined();
});

test("a simulation of a payer with code, or without its gas, is not shared", () => {
  const simulationCache = createSimulationCache({ ...times, now: () => 0 });
  simulationCache.remember(first, { ...facts, payerHasCode: true });
  simulationCache.remember(second, { ...facts, gasUsed: undefined });
  expect([simulationCache.share(first), simulationCache.share(second)]).toEqual([
    undefined,
    undefined,
  ]);
});

test("twelve payments of payers with code fit the default gas budget of a minute", () => {
  const simulationCache = createSimulationCache({ ...times, now: () => 0 });
  const signature: Hex = `0x${"77".repeat(100)}`;
  simulationCache.remember({ ...first, signature }, { payerHasCode: true, gasUsed: undefined });
  const gas = simulationCache.gasAtRisk(first.id) ?? 0n;
  expect(defaultCodePayerLimits.gasPerMinute / gas).toBe(12n);
});

test("a payer seen with code puts gas at risk for a while, whatever its nonce's later simulations return", () => {
  let now = 0;
  const simulationCache = createSimulationCache({ ...times, now: () => now });
  const identity = first.id;
  expect(simulationCache.gasAtRisk(identity)).toBeUndefined();
  simulationCache.remember(
    { ...first, signature: "0x1234" },
    { payerHasCode: true, gasUsed: undefined },
  );
  simulationCache.remember(first, facts);
  simulationCache.forget(first);
  expect(simulationCache.gasAtRisk(identity)).toBeGreaterThan(320_000n);
  now = 60_000;
  simulationCache.remember(second, { payerHasCode: true, gasUsed: undefined });
  expect(simulationCache.gasAtRisk(identity)).toBeUndefined();
});

test("a gas figure that no call can have used is rejected", () => {
  const simulationCache = createSimulationCache({ ...times, now: () => 0 });
  simulationCache.remember(first, { payerHasCode: false, gasUsed: 2n ** 200n });
  expect(simulationCache.recall(first)?.gasUsed).toBe(300_000n);
});

function transferOf(number: number): Claim {
  const payer = "0x00000000000000000000000000000000000000bb";
  const nonce: Hex = `0x${number.toString(16).padStart(64, "0")}`;
  const asset = "0x00000000000000000000000000000000000000aa";
  return {
    kind: "eip3009",
    id: { network: "eip155:9745", asset, payer, nonce },
    authorization: {
      from: payer,
      to: "0x00000000000000000000000000000000000000cc",
      value: 1n,
      validAfter: 0n,
      validBefore: 2n,
      nonce,
    },
    signature: `0x${"11".repeat(65)}`,
  };
}
