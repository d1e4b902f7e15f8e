import { plasma } from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import { executePayment } from "../testing/execute-payment.ts";
import { reject, requirements, startSeller } from "../testing/seller.ts";
import { useWorld } from "../testing/world.ts";

const world = useWorld();
const { keep, createFetch } = world;

describe("the booking of a refused payment", () => {
  // Ten cents in all: a second payment has room only once the first has provably expired unused.
  async function startPickySeller(onFirst: () => Promise<void> = async () => {}) {
    return keep(
      await startSeller({
        accepts: () => [requirements({ amount: "100000" })],
        onPaid: async (paid, response, count) => {
          if (count > 1) return false;
          await onFirst();
          reject(response, paid, "invalid_exact_evm_transaction_failed");
          return true;
        },
      }),
    );
  }

  /** The chain by two hosts: one node under two names. */
  const twoHosts = () => {
    const { rpcUrl } = world.devnet();
    return { [plasma]: [rpcUrl, rpcUrl.replace("127.0.0.1", "localhost")] };
  };

  async function startClock() {
    const { client } = world.devnet();
    let now = Number((await client.getBlock()).timestamp) * 1000;
    return {
      now: () => now,
      pass(seconds: number) {
        now += seconds * 1000;
      },
      /** Advances the chain's clock to this one. */
      async mine() {
        await client.setNextBlockTimestamp({ timestamp: BigInt(Math.floor(now / 1000)) });
        await client.mine({ blocks: 1 });
      },
    };
  }

  it("stays while the seller can still execute the payment, and is released when it expired unused", async () => {
    const seller = await startPickySeller();
    const { now, pass, mine } = await startClock();
    const pay = createFetch({ now, rpcUrls: twoHosts(), budget: { perDay: "$0.10" } });
    expect((await pay(seller.url)).status).toBe(402);

    await expect(pay(seller.url)).rejects.toMatchObject({ code: "over_budget" });
    pass(1000);
    // Expired by our clock and not by the chain's: the seller could still execute the payment.
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "over_budget" });
    await mine();
    expect((await pay(seller.url)).status).toBe(200);
    expect(world.account().signatures()).toBe(2);
  });

  it("stays until a day after its expiry where one host alone reports it as unused", async () => {
    const seller = await startPickySeller();
    const { now, pass, mine } = await startClock();
    const pay = createFetch({ now, budget: { perDay: "$0.10" } });
    expect((await pay(seller.url)).status).toBe(402);
    for (const hours of [1, 22]) {
      pass(hours * 3_600);
      await mine();
      await expect(pay(seller.url)).rejects.toMatchObject({ code: "over_budget" });
    }
    pass(3 * 3_600);
    await mine();
    expect((await pay(seller.url)).status).toBe(200);
    expect(world.account().signatures()).toBe(2);
  });

  it("stays when the payment was executed anyway", async () => {
    const { client } = world.devnet();
    const seller = await startPickySeller();
    let now = Number((await client.getBlock()).timestamp) * 1000;
    const pay = createFetch({ now: () => now, budget: { perDay: "$0.10" } });
    await pay(seller.url);
    const [paid] = seller.paid;
    if (!paid) throw new Error("The seller got no payment");
    await executePayment(world.devnet(), paid);

    now += 1000 * 1000;
    await client.setNextBlockTimestamp({ timestamp: BigInt(Math.floor(now / 1000)) });
    await client.mine({ blocks: 1 });
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "over_budget" });
    expect(world.account().signatures()).toBe(1);
  });
});
