import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import { countSignatures } from "./testing/counting-account.ts";
import { requirements, startSeller } from "./testing/seller.ts";
import { useWorld } from "./testing/world.ts";

const world = useWorld();
const { keep, createFetch } = world;

const poorAccount = () => countSignatures(privateKeyToAccount(generatePrivateKey()));

/** A promise, and the function that resolves it once it was called this many times. */
function countDown(times: number): { done: Promise<void>; call: () => false } {
  let left = times;
  let resolve: () => void = () => {};
  const done = new Promise<void>((set) => {
    resolve = set;
  });
  return {
    done,
    call() {
      left -= 1;
      if (left === 0) resolve();
      return false;
    },
  };
}

describe("calls that need a top-up at the same time", () => {
  it("pay beside each other once the funds are there", async () => {
    const paid = countDown(10);
    const onPaid = async () => {
      paid.call();
      await paid.done;
      return false;
    };
    const offers = countDown(10);
    const seller = keep(await startSeller({ onPaid, onUnpaid: () => offers.call() }));
    const account = poorAccount();
    let asked = 0;
    const topUp = async () => {
      asked += 1;
      await offers.done;
      await world.devnet().mint({ to: account.address, amount: 10_000n });
      return true;
    };
    const pay = createFetch({ account, topUp });
    const calls = Array.from({ length: 10 }, () => pay(seller.url));
    for (const { status } of await Promise.all(calls)) expect(status).toBe(200);
    expect(asked).toBe(1);
  });

  it.each([
    ["refusal", async () => false, "insufficient_funds"],
    [
      "error",
      () => Promise.reject(Object.assign(new Error("no bridge"), { code: "none" })),
      "none",
    ],
  ])("share the %s of the first top-up", async (_name, topUp, code) => {
    let count = 0;
    const offers = countDown(5);
    const seller = keep(await startSeller({ onUnpaid: () => offers.call() }));
    const pay = createFetch({
      account: poorAccount(),
      topUp: async () => {
        count += 1;
        await offers.done;
        return topUp();
      },
    });
    const ends = await Promise.allSettled([1, 2, 3, 4, 5].map(() => pay(seller.url)));
    for (const end of ends) expect(end).toMatchObject({ status: "rejected", reason: { code } });
    expect(count).toBe(1);
  });
});

describe("a call within a callback of another one", () => {
  it("is refused where it had to wait for the top-up that makes it", async () => {
    const seller = keep(await startSeller());
    const nested: unknown[] = [];
    const pay = createFetch({
      account: poorAccount(),
      topUp: async () => {
        await pay(seller.url).catch((error: unknown) => nested.push(error));
        return false;
      },
    });
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "insufficient_funds" });
    expect(nested).toMatchObject([{ code: "insufficient_funds" }]);
  });

  it("is refused where it had to wait for the purchase that makes it", async () => {
    const seller = keep(await startSeller());
    const dear = keep(await startSeller({ accepts: () => [requirements({ amount: "1500" })] }));
    const account = poorAccount();
    const nested: unknown[] = [];
    const pay = createFetch({
      account,
      topUp: async () => {
        await world.devnet().mint({ to: account.address, amount: 1000n });
        return true;
      },
      beforeSend: async () => {
        await pay(dear.url).catch((error: unknown) => nested.push(error));
      },
    });
    expect((await pay(seller.url)).status).toBe(200);
    expect(nested).toMatchObject([{ code: "insufficient_funds" }]);
  });
});
