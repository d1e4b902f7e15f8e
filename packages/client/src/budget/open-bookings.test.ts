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

describe("open bookings", () => {
  it("are looked at all in turn, also behind many whose outcome no node knows", async () => {
    let now = start;
    const budget = createSpendingBudget({
      store: createMemoryStore(),
      now: () => now,
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
    [10_000, (): string => "shop.example"],
    [50_000, (nonce: number): string => `shop-${nonce}.example`],
  ])("are refused beyond %i, so that the file stays readable", async (count, hostOf) => {
    const store = createMemoryStore();
    const open = Array.from({ length: count }, (_, nonce) => ({
      ...{
        id: idOf(nonce),
        validBefore: start / 1000 + 300,
        hour: start / 3_600_000,
        pot: "other",
      },
      ...{ host: hostOf(nonce), amount: 1n },
    }));
    await store.update(() => ({ state: { ...emptyBudget, open }, result: undefined }));
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
});
