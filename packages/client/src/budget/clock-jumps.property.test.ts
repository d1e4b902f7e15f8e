import fc from "fast-check";
import { bytesToHex } from "viem";
import { describe, expect, it } from "vitest";
import { startSeller } from "../testing/seller.ts";
import { useWorld } from "../testing/world.ts";
import { createMemoryStore } from "./budget-store.ts";
import { createSpendingBudget } from "./spending-budget.ts";
import type { SpendableAsset } from "./spending-policy.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const yearMs = 365 * dayMs;

/** Two payments of one unit a day, a chain whose time is right, and a clock that may be off. */
function createScene() {
  const limits = { perPayment: 1n, perHost: 2n, perDay: 2n };
  const asset: SpendableAsset = {
    network: "eip155:9745",
    address: `0x${"11".repeat(20)}`,
    name: "T",
    version: "1",
    decimals: 2,
    pot: { name: "p", decimals: 2, limits },
  };
  const scene = {
    time: 1_700_000_000_000,
    offset: 0,
    times: (): number[] => [scene.time],
    /** Unix milliseconds of payments that could move tokens. */
    moved: [] as number[],
    async pay(end: "settle" | "leave" = "settle") {
      const nonce = bytesToHex(crypto.getRandomValues(new Uint8Array(32)));
      const { network, address } = asset;
      const id = { network, asset: address, payer: address, nonce };
      const validBefore = Math.floor((scene.time + scene.offset) / 1000) + 300;
      const booked = await budget.book({ id, validBefore, asset, amount: 1n, host: "a" });
      if (!booked.ok) return "refused";
      if (end === "settle") await budget.settle(nonce);
      if (validBefore * 1000 > scene.time) scene.moved.push(scene.time);
      return "booked";
    },
  };
  const budget = createSpendingBudget({
    store: createMemoryStore(),
    now: () => scene.time + scene.offset,
    chains: { wasUsed: async () => undefined, readTimes: async () => scene.times() },
  });
  return scene;
}

describe("a clock that jumps", () => {
  it.each([
    ["ahead", yearMs],
    ["back", -yearMs],
    ["ahead by a day", dayMs + hourMs],
  ])(
    "pays nothing meanwhile, starts no day early, and is tolerated afterwards: %s",
    async (_name, offset) => {
      const scene = createScene();
      expect([await scene.pay(), await scene.pay(), await scene.pay()]).toEqual([
        "booked",
        "booked",
        "refused",
      ]);
      scene.offset = offset;
      await expect(scene.pay()).rejects.toMatchObject({ code: "clock_wrong" });
      scene.offset = 0;
      expect(await scene.pay()).toBe("refused");
      scene.time += dayMs + 2 * hourMs;
      expect(await scene.pay()).toBe("booked");
    },
  );

  it("blocks the budget for a day at most, when the first bookings were made a year ahead", async () => {
    const scene = createScene();
    scene.offset = yearMs;
    expect([await scene.pay(), await scene.pay()]).toEqual(["booked", "booked"]);
    scene.offset = 0;
    expect(await scene.pay()).toBe("refused");
    scene.time += dayMs + 3 * hourMs;
    expect(await scene.pay()).toBe("booked");
  });

  it("frees nothing while no chain returns the time, and day-old bookings once one does", async () => {
    const scene = createScene();
    await scene.pay();
    await scene.pay();
    scene.time += 3 * dayMs;
    scene.times = () => [];
    expect(await scene.pay()).toBe("refused");
    scene.times = () => [scene.time - 30 * dayMs, scene.time];
    expect(await scene.pay()).toBe("booked");
  });

  it("never lets more than two payments of two a day move tokens, for any jumps", async () => {
    const step = fc.record({
      afterMs: fc.integer({ min: 0, max: 9 * hourMs }),
      offset: fc.constantFrom(0, 0, 0, yearMs, -yearMs, dayMs, -dayMs, hourMs / 2, -hourMs / 2),
      end: fc.constantFrom("settle" as const, "leave" as const),
      isSilent: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const scene = createScene();
        for (const { afterMs, offset, end, isSilent } of steps) {
          scene.time += afterMs;
          scene.offset = offset;
          scene.times = () => (isSilent ? [] : [scene.time]);
          await scene.pay(end).catch((error: unknown) => {
            expect(error).toMatchObject({ code: "clock_wrong" });
          });
          const ofDay = scene.moved.filter((at) => at > scene.time - dayMs);
          expect(ofDay.length).toBeLessThanOrEqual(2);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe("a fetch's clock", () => {
  const world = useWorld();

  it("is compared with the chain's after a jump", async () => {
    const seller = world.keep(await startSeller());
    let offset = 0;
    const pay = world.createFetch({ now: () => Date.now() + offset });
    expect((await pay(seller.url)).status).toBe(200);
    offset = yearMs;
    await expect(pay(seller.url)).rejects.toMatchObject({
      code: "clock_wrong",
      moneyMayHaveMoved: false,
    });
    offset = 0;
    expect((await pay(seller.url)).status).toBe(200);
    expect(world.account().signatures()).toBe(2);
  });
});
