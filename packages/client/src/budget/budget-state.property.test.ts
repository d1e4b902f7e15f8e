import fc from "fast-check";
import { bytesToHex } from "viem";
import { describe, expect, it } from "vitest";
import { bookedIn, emptyBudget } from "./budget-state.ts";
import type { BudgetStore } from "./budget-store.ts";
import { createMemoryStore } from "./budget-store.ts";
import { createSpendingBudget } from "./spending-budget.ts";
import { type BudgetBucket, inBucket, type SpendableAsset } from "./spending-policy.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

function assetIn(pot: BudgetBucket, decimals: number): SpendableAsset {
  const address = `0x${"11".repeat(20)}` as const;
  return { network: "eip155:9745", address, name: "T", version: "1", decimals, pot };
}

function nonceOf(index: number): `0x${string}` {
  return bytesToHex(new Uint8Array(32).fill(index));
}

/** A store that shows its state. */
function createOpenStore() {
  const store: BudgetStore = createMemoryStore();
  const read = () => store.update((state) => ({ state, result: state }));
  return { store, read };
}

const limits = fc
  .tuple(
    fc.bigInt({ min: 0n, max: 100n }),
    fc.bigInt({ min: 0n, max: 100n }),
    fc.bigInt({ min: 0n, max: 100n }),
  )
  .map(([perPayment, b, c]) => ({ perPayment, perHost: b, perDay: c }));

const step = fc.record({
  afterMs: fc.integer({ min: 0, max: 6 * hourMs }),
  host: fc.constantFrom("a", "b", "c"),
  amount: fc.bigInt({ min: 0n, max: 60n }),
  end: fc.constantFrom("settle", "release", "leave"),
});

describe("a budget", () => {
  it("never lets the bookings of any day exceed a limit, for any sequence of bookings and releases", async () => {
    await fc.assert(
      fc.asyncProperty(limits, fc.array(step, { maxLength: 40 }), async (limits, steps) => {
        const pot: BudgetBucket = { name: "p", decimals: 2, limits };
        const asset = assetIn(pot, 2);
        const { store } = createOpenStore();
        let now = 1_700_000_000_000;
        const budget = createSpendingBudget({
          store,
          now: () => now,
          chains: { wasUsed: async () => undefined, readTimes: async () => [now] },
        });
        const kept: { at: number; host: string; amount: bigint }[] = [];

        for (const [index, { afterMs, host, amount, end }] of steps.entries()) {
          now += afterMs;
          const nonce = nonceOf(index);
          const id = { network: asset.network, asset: asset.address, payer: asset.address, nonce };
          const booked = await budget.book({ id, validBefore: 0, asset, amount, host });
          if (!booked.ok) continue;
          expect(amount).toBeLessThanOrEqual(limits.perPayment);
          const ofDay = [...kept, { at: now, host, amount }].filter(({ at }) => at > now - dayMs);
          const sum = (entries: typeof ofDay) =>
            entries.reduce((all, each) => all + each.amount, 0n);
          expect(sum(ofDay)).toBeLessThanOrEqual(limits.perDay);
          expect(sum(ofDay.filter((each) => each.host === host))).toBeLessThanOrEqual(
            limits.perHost,
          );
          if (end === "settle") await budget.settle(nonce);
          if (end === "release") await budget.release(nonce);
          else kept.push({ at: now, host, amount });
        }
      }),
    );
  });

  it("regains exactly the released amount, and all of it after a day and an hour", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 20 }), async (steps) => {
        const most = 10_000n;
        const pot: BudgetBucket = {
          name: "p",
          decimals: 2,
          limits: { perPayment: most, perHost: most, perDay: most },
        };
        const asset = assetIn(pot, 2);
        const { store, read } = createOpenStore();
        let now = 1_700_000_000_000;
        const budget = createSpendingBudget({
          store,
          now: () => now,
          chains: { wasUsed: async () => undefined, readTimes: async () => [now] },
        });
        const book = (index: number, amount: bigint, host: string) => {
          const nonce = nonceOf(index);
          const id = { network: asset.network, asset: asset.address, payer: asset.address, nonce };
          return budget.book({ id, validBefore: 0, asset, amount, host });
        };
        let kept = 0n;
        for (const [index, { host, amount, end }] of steps.entries()) {
          await book(index, amount, host);
          if (end === "settle") await budget.settle(nonceOf(index));
          if (end === "release") await budget.release(nonceOf(index));
          else kept += amount;
        }
        expect(bookedIn(await read(), "p")).toBe(kept);
        expect((await book(100, most - kept + 1n, "a")).ok).toBe(false);
        expect((await book(101, most - kept, "a")).ok).toBe(true);
        now += dayMs + hourMs;
        expect((await book(102, most, "a")).ok).toBe(true);
        await budget.release(nonceOf(102));
        expect(await read()).toEqual({ ...emptyBudget, bookedAt: now });
      }),
    );
  });
});

describe("the booking of a channel whose token has changed its bucket", () => {
  it("is neither lowered nor spent in the unit of the other bucket", async () => {
    const limits = { perPayment: 10n ** 30n, perHost: 10n ** 30n, perDay: 10n ** 30n };
    const bucketOf = (decimals: number) =>
      assetIn({ name: `of ${decimals} decimals`, decimals, limits }, 6);
    const amounts = fc.bigInt({ min: 1n, max: 10n ** 9n });
    await fc.assert(
      fc.asyncProperty(amounts, amounts, fc.boolean(), async (booked, other, isFine) => {
        const { store, read } = createOpenStore();
        const now = 1_700_000_000_000;
        const chains = { wasUsed: async () => undefined, readTimes: async () => [now] };
        const budget = createSpendingBudget({ store, now: () => now, chains });
        const [asset, changed] = [bucketOf(isFine ? 18 : 6), bucketOf(isFine ? 6 : 18)];
        const { network, address: payer } = asset;
        const id = { network, asset: payer, payer, nonce: nonceOf(1) };
        await budget.bookExposure({ id, asset, host: "a", amount: booked, ceiling: 0n });
        const { open } = await read();
        await budget.lowerExposure({ id, asset: changed, exposureAt: () => other });
        await budget.spendExposure({ id, asset: changed, host: "a", amount: other });
        expect((await read()).open).toEqual(open);
        await budget.lowerExposure({ id, asset: changed, exposureAt: () => 0n });
        expect((await read()).open).toEqual([]);
      }),
    );
  });
});

describe("an amount in its budget bucket", () => {
  it("is never rounded down, and is exact where the bucket can express it", () => {
    const limits = { perPayment: 0n, perHost: 0n, perDay: 0n };
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }),
        fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }),
        fc.integer({ min: 0, max: 77 }),
        (a, b, decimals) => {
          const asset = assetIn({ name: "usd", decimals: 18, limits }, decimals);
          const inUnits = inBucket(asset, a);
          // Compared as fractions: inUnits / 10^18 against a / 10^decimals.
          const left = inUnits * 10n ** BigInt(decimals);
          const right = a * 10n ** 18n;
          expect(left).toBeGreaterThanOrEqual(right);
          expect(left - right).toBeLessThan(10n ** BigInt(decimals));
          if (decimals <= 18) expect(left).toBe(right);
          expect(inBucket(asset, a) + inBucket(asset, b)).toBeGreaterThanOrEqual(
            inBucket(asset, a + b),
          );
        },
      ),
    );
  });
});
