import { describe, expect, it } from "vitest";
import { paymentOf } from "../index.ts";
import type { ChannelSeller } from "../testing/channel-seller.ts";
import { useChannels } from "../testing/use-channels.ts";

const { world, sellerOf, createFetch, records, onChain } = useChannels();

const ceilings = ({ paid }: ChannelSeller) => paid.map(({ ceiling }) => ceiling);
const types = ({ paid }: ChannelSeller) => paid.map(({ payload }) => payload.type);

describe("a purchase by a channel", () => {
  it("deposits once, then pays each request by a voucher for exactly its price more", async () => {
    const seller = await sellerOf();
    const pay = createFetch();
    for (let count = 0; count < 3; count += 1) {
      const response = await pay(seller.url);
      expect(await response.json()).toEqual({ forecast: "sun" });
      expect(paymentOf(response)).toMatchObject({ state: "settled", protocol: "x402" });
    }
    expect(types(seller)).toEqual(["deposit", "voucher", "voucher"]);
    expect(ceilings(seller)).toEqual([1000n, 2000n, 3000n]);
    const [record] = await records();
    expect(record).toMatchObject({
      ceiling: 3000n,
      charged: 3000n,
      spent: 3000n,
      balance: 10_000n,
    });
    expect(record?.deposit).toBeUndefined();
    // One signature for the deposit, one for each voucher.
    expect(world.account().signatures()).toBe(4);
    expect(world.states().slice(0, 4)).toEqual(["booked", "signed", "sent", "settled"]);
  });

  it("goes on with its channel after a restart, without a deposit and without asking the chain", async () => {
    const seller = await sellerOf();
    await createFetch()(seller.url);
    await createFetch()(seller.url);
    expect(types(seller)).toEqual(["deposit", "voucher"]);
    expect(ceilings(seller)).toEqual([1000n, 2000n]);
  });

  it("signs less than the last ceiling where less was charged", async () => {
    const seller = await sellerOf({
      onPaid: async (paid, response) => {
        await seller.deposit(paid);
        seller.sell(paid, response, 300n);
        return true;
      },
    });
    const pay = createFetch();
    await pay(seller.url);
    await pay(seller.url);
    expect(ceilings(seller)).toEqual([1000n, 1300n]);
    const [record] = await records();
    expect(record).toMatchObject({ ceiling: 1300n, charged: 600n, spent: 600n });
  });

  it("believes no receipt above the price, nor one below zero", async () => {
    const seller = await sellerOf({
      onPaid: async (paid, response) => {
        await seller.deposit(paid);
        seller.sell(paid, response, 900_000n);
        return true;
      },
    });
    const pay = createFetch();
    await pay(seller.url);
    expect((await records())[0]).toMatchObject({ ceiling: 1000n, charged: 1000n });
  });

  it("pays the first purchase at a seller by exact, and the second by a channel", async () => {
    const seller = await sellerOf({ offersExact: true });
    const pay = createFetch();
    await pay(seller.url);
    expect([seller.exact.length, seller.paid.length]).toEqual([1, 0]);
    await pay(seller.url);
    expect([seller.exact.length, seller.paid.length]).toEqual([1, 1]);
    const other = await sellerOf({ offersExact: true });
    await createFetch({ exactFirst: false })(other.url);
    expect([other.exact.length, other.paid.length]).toEqual([0, 1]);
  });

  it("pays by exact where a channel is dearer, or the escrow is missing", async () => {
    const seller = await sellerOf({ offersExact: true, amount: 2000n });
    await createFetch({ exactFirst: false })(seller.url);
    expect([seller.exact.length, seller.paid.length]).toEqual([1, 0]);
  });

  it("opens no channel without the option channels", async () => {
    const seller = await sellerOf();
    const error = await world.refusalOf(world.createFetch()(seller.url));
    expect(error.code).toBe("unsupported_offer");
    expect(seller.paid).toHaveLength(0);
  });

  it("tops up before the balance is exceeded, and never has two deposits open", async () => {
    const seller = await sellerOf({ amount: 4000n });
    const pay = createFetch();
    for (let count = 0; count < 4; count += 1) await pay(seller.url);
    expect(types(seller)).toEqual(["deposit", "voucher", "deposit", "voucher"]);
    expect(ceilings(seller)).toEqual([4000n, 8000n, 12_000n, 16_000n]);
    const [record] = await records();
    expect(await onChain(record?.id)).toMatchObject({ balance: 20_000n });
    expect(record).toMatchObject({ balance: 20_000n, deposit: undefined });
  });

  it("uses lanes for parallel requests, each with a channel of its own", async () => {
    const seller = await sellerOf();
    const pay = createFetch({ lanes: 2 });
    const responses = await Promise.all([1, 2, 3, 4].map(() => pay(seller.url)));
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(new Set(seller.paid.map(({ id }) => id)).size).toBe(2);
    expect(seller.sold).toHaveLength(4);
    const charged = (await records()).map((record) => record.charged);
    expect(charged.reduce((sum, each) => sum + each)).toBe(4000n);
  });

  it("serves requests of two processes on one channel one after the other", async () => {
    const seller = await sellerOf();
    const responses = await Promise.all([1, 2, 3].map(() => createFetch()(seller.url)));
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(ceilings(seller)).toEqual([1000n, 2000n, 3000n]);
  });

  it("names no foreign seller's channel: another origin with the same terms has its own", async () => {
    const seller = await sellerOf();
    const copy = await sellerOf();
    const pay = createFetch();
    await pay(seller.url);
    await pay(copy.url);
    expect(copy.paid[0]?.id).not.toBe(seller.paid[0]?.id);
  });
});
