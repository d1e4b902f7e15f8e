import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { budgetStateSchema } from "../budget/budget-state.ts";
import { paymentOf, type SignedPayment } from "../index.ts";
import { useChannels } from "../testing/use-channels.ts";

const { world, inFolder, sellerOf, createFetch, records } = useChannels();

const micro = 10n ** 12n;

/** Booked in the budget's file, in the token's smallest unit. */
async function booked() {
  const { spent, open } = budgetStateSchema.parse(
    JSON.parse(await readFile(inFolder("budget.json"), "utf8")),
  );
  const sum = (entries: { amount: bigint }[]) =>
    entries.reduce((total, { amount }) => total + amount, 0n) / micro;
  return { spent: sum(spent), open: sum(open) };
}

describe("the budget", () => {
  it("counts what vouchers were charged, and no deposit", async () => {
    const seller = await sellerOf({ extra: () => ({ minDeposit: "900000" }) });
    const budget = { perDay: "$0.002", file: inFolder("budget.json") };
    const pay = createFetch({}, { budget });
    await pay(seller.url);
    await pay(seller.url);
    expect(await booked()).toEqual({ spent: 2000n, open: 0n });
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "over_budget" });
    expect(seller.paid).toHaveLength(2);
    expect((await records())[0]?.ceiling).toBe(2000n);
  });

  it("is not overspent by lanes at the same time", async () => {
    const seller = await sellerOf();
    const budget = { perDay: "$0.002", file: inFolder("budget.json") };
    const pay = createFetch({ lanes: 4 }, { budget });
    const calls = await Promise.allSettled([1, 2, 3, 4].map(() => pay(seller.url)));
    expect(calls.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
    expect(seller.sold).toHaveLength(2);
  });

  it("refuses a price above that for one payment, and signs nothing", async () => {
    const seller = await sellerOf({ amount: 100_001n });
    const error = await world.refusalOf(createFetch()(seller.url));
    expect(error.code).toBe("over_budget");
    expect(await records()).toEqual([]);
  });
});

describe("a voucher that is kept", () => {
  it("is stored before it is sent: a failure to keep it costs no money", async () => {
    const seller = await sellerOf();
    const kept: SignedPayment[] = [];
    const pay = createFetch(
      {},
      {
        beforeSend: (payment) => {
          kept.push(payment);
          throw new Error("The disk is full");
        },
      },
    );
    await expect(pay(seller.url)).rejects.toThrow("The disk is full");
    expect(seller.paid).toHaveLength(0);
    expect((await records())[0]).toMatchObject({ ceiling: 1000n, charged: 0n });
    // The same deposit and the same ceiling: nothing of it was lost, nothing is signed higher.
    await createFetch()(seller.url);
    const [record] = await records();
    expect(record).toMatchObject({ ceiling: 1000n, charged: 1000n, balance: 10_000n });
    expect(kept[0]?.terms.channel).toMatchObject({ ceiling: "1000", deposit: "10000" });
  });

  it("is resumed by the same voucher, and moves the count once", async () => {
    const seller = await sellerOf({
      onPaid: (_paid, response, count) => {
        if (count < 2 || count > 6) return false;
        response.destroy();
        return true;
      },
    });
    const pay = createFetch();
    await pay(seller.url);
    const error = await pay(seller.url).catch((thrown: unknown) => thrown);
    const { payment } = Object(error) as { payment: SignedPayment };
    const signatures = world.account().signatures();
    const response = await createFetch().resume(JSON.parse(JSON.stringify(payment)), seller.url);
    expect(paymentOf(response)?.state).toBe("settled");
    expect(world.account().signatures()).toBe(signatures);
    expect((await records())[0]).toMatchObject({ ceiling: 2000n, charged: 2000n });
    await expect(
      createFetch({ file: inFolder("other.db") }).resume(payment, seller.url),
    ).rejects.toMatchObject({ code: "channel_unknown" });
    await expect(world.createFetch().resume(payment, seller.url)).rejects.toMatchObject({
      code: "channel_unknown",
    });
  });
});

// The last test: it moves the time of the chain.
describe("the budget of another day", () => {
  it("keeps what a voucher allows beyond its charge, for longer than a day", async () => {
    let charge = 300n;
    const seller = await sellerOf({
      onPaid: async (paid, response) => {
        await seller.deposit(paid);
        seller.sell(paid, response, charge);
        return true;
      },
    });
    const { client } = world.devnet();
    let now = Number((await client.getBlock()).timestamp) * 1000;
    const budget = { perDay: "$0.0015", file: inFolder("budget.json") };
    const pay = createFetch({}, { budget, now: () => now });
    await pay(seller.url);
    expect(await booked()).toEqual({ spent: 300n, open: 700n });
    // 300 spent, and 1000 that may be claimed beyond it.
    charge = 1000n;
    await pay(seller.url);
    expect(await booked()).toEqual({ spent: 1300n, open: 0n });
    charge = 100n;
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "over_budget" });

    now += 26 * 3_600_000;
    await client.setNextBlockTimestamp({ timestamp: BigInt(Math.floor(now / 1000)) });
    await client.mine({ blocks: 1 });
    await pay(seller.url);
    expect(await booked()).toEqual({ spent: 100n, open: 900n });
    now += 26 * 3_600_000;
    await client.setNextBlockTimestamp({ timestamp: BigInt(Math.floor(now / 1000)) });
    await client.mine({ blocks: 1 });
    await pay(seller.url);
    expect(await booked()).toEqual({ spent: 100n, open: 900n });
  });
});
