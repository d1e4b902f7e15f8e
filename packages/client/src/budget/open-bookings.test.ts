import { type Network, plasma, plasmaUsdt0, stable } from "@coinslot/protocol";
import { numberToHex } from "viem";
import { describe, expect, it } from "vitest";
import { emptyBudget } from "./budget-state.ts";
import { createMemoryStore } from "./budget-store.ts";
import { createSpendingBudget } from "./spending-budget.ts";
import type { SpendableAsset } from "./spending-policy.ts";

const start = Date.UTC(2026, 0, 1);
const pot = {
  name: "usd",
  decimals: 6,
  limits: { perPayment: 1n, perHost: 100_000n, perDay: 41n },
};
const asset: SpendableAsset = { ...plasmaUsdt0, network: plasma, pot };
const idOf = (nonce: number, network: Network = plasma) => ({
  ...{ network, asset: plasmaUsdt0.address, payer: plasmaUsdt0.address },
  nonce: numberToHex(nonce, { size: 32 }),
});
const requestOf = (nonce: number, network: Network = plasma) => ({
  ...{ id: idOf(nonce, network), asset, amount: 1n, host: "shop.example" },
  validBefore: start / 1000 + 300,
});

/** A store of so many payments of another bucket, without an outcome. */
async function storeOf(count: number, hostOf: (nonce: number) => string = () => "shop.example") {
  const store = createMemoryStore();
  const open = Array.from({ length: count }, (_, nonce) => ({
    ...{ id: idOf(nonce), validBefore: start / 1000 + 300, hour: start / 3_600_000 },
    ...{ pot: "other", host: hostOf(nonce), amount: 1n },
  }));
  await store.update(() => ({ state: { ...emptyBudget, open }, result: undefined }));
  return { store, open };
}

describe("open bookings", () => {
  it("are looked at all in turn, also behind many whose outcome no node knows", async () => {
    let now = start;
    const budget = createSpendingBudget({
      store: createMemoryStore(),
      now: () => now,
      random: () => 0,
      chains: {
        // The other chain is away.
        wasUsed: async ({ id }) => (id.network === plasma ? false : undefined),
        readTimes: async () => [now],
      },
    });
    for (let nonce = 0; nonce < 41; nonce += 1) {
      expect(await budget.book(requestOf(nonce, nonce < 40 ? stable : plasma))).toEqual({
        ok: true,
        isNew: true,
      });
    }
    now += 1_200_000;
    const booked = [];
    for (let nonce = 41; nonce < 44; nonce += 1) booked.push(await budget.book(requestOf(nonce)));
    expect(booked.map(({ ok }) => ok)).toEqual([false, false, true]);
  });

  it.each([
    [5_000, (): string => "shop.example"],
    [20_000, (nonce: number): string => `shop-${nonce}.example`],
  ])("are refused beyond %i, so that the file stays readable", async (count, hostOf) => {
    const { store, open } = await storeOf(count, hostOf);
    const chains = { wasUsed: async () => undefined, readTimes: async () => [start] };
    const budget = createSpendingBudget({ store, now: () => start, chains });
    expect(await budget.book(requestOf(count))).toMatchObject({
      ok: false,
      message: expect.stringContaining("payments without an outcome"),
    });
    // One that is replaced leaves its place.
    const [first] = open;
    const insteadOf = [first?.id.nonce ?? ""];
    expect(await budget.book({ ...requestOf(count), insteadOf })).toMatchObject({ ok: true });
  });

  it("leave their places once their outcome is known, in each bucket", async () => {
    const { store } = await storeOf(5_000);
    const now = start + 1_200_000;
    const chains = { wasUsed: async () => true, readTimes: async () => [now] };
    const budget = createSpendingBudget({ store, now: () => now, chains });
    expect(await budget.book(requestOf(5_000))).toMatchObject({ ok: true });
  });

  it("are looked at from a random one on: a short process looks once", async () => {
    const { store } = await storeOf(5_000);
    const now = start + 1_200_000;
    const chains = {
      wasUsed: async ({ id }: { id: { nonce: string } }) =>
        id.nonce === idOf(4_999).nonce ? false : undefined,
      readTimes: async () => [now],
    };
    const bookAt = (random: number) =>
      createSpendingBudget({ store, now: () => now, chains, random: () => random }).book(
        requestOf(5_000),
      );
    expect(await bookAt(0)).toMatchObject({ ok: false });
    expect(await bookAt(0.999)).toMatchObject({ ok: true });
  });

  it("beyond the limits of today refuse no channel that books no more than before", async () => {
    const { store } = await storeOf(6_000);
    const { id, amount, host } = requestOf(6_000);
    const exposure = { id, asset, host, amount: 3n * amount, ceiling: 0n };
    const hour = start / 3_600_000;
    await store.update((state) => {
      const before = { id, validBefore: start / 1000 + 300, hour, pot: "usd", host };
      const open = [...state.open, { ...before, amount: 5n }];
      return { state: { ...state, open }, result: undefined };
    });
    const chains = { wasUsed: async () => undefined, readTimes: async () => [start] };
    const budget = createSpendingBudget({ store, now: () => start, chains });
    expect(await budget.bookExposure(exposure)).toMatchObject({ ok: true });
    expect(await budget.bookExposure({ ...exposure, amount: 6n })).toMatchObject({ ok: false });
  });
});
