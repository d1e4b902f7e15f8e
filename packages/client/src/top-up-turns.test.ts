import { formatChallenge, plasma } from "@coinslot/protocol";
import { toFunctionSelector } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import { countSignatures } from "./testing/counting-account.ts";
import { executePayment } from "./testing/execute-payment.ts";
import { startLyingNode } from "./testing/lying-node.ts";
import { challengeOf, execute, sellByMpp, startMppSeller } from "./testing/mpp-seller.ts";
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

describe("a call that reads its balance while an earlier purchase ends", () => {
  it("does not take what that purchase has spent for its own", async () => {
    const account = poorAccount();
    const readLate = countDown(1);
    const seller = keep(
      await startSeller({
        onPaid: async (paid) => {
          await readLate.done;
          await executePayment(world.devnet(), paid);
          return false;
        },
      }),
    );
    const balanceOf = toFunctionSelector("balanceOf(address)").slice(2);
    const readEmpty = countDown(2);
    let reads = 0;
    const node = await startLyingNode(world.devnet().rpcUrl, async ({ params }) => {
      if (!JSON.stringify(params ?? []).includes(balanceOf)) return;
      reads += 1;
      readEmpty.call();
      // Of the second call, once the first one pays: the answer of before arrives late.
      if (reads !== 4) return;
      readLate.call();
      await Promise.race(calls);
    });
    let asked = 0;
    const topUp = async () => {
      asked += 1;
      await readEmpty.done;
      await world.devnet().mint({ to: account.address, amount: 1000n });
      return true;
    };
    const pay = createFetch({ account, rpcUrls: { [plasma]: keep(node).url }, topUp });
    const calls = [pay(seller.url), pay(seller.url)];
    for (const { status } of await Promise.all(calls)) expect(status).toBe(200);
    expect(asked).toBe(2);
  });
});

describe("a call whose challenge another payment answers", () => {
  it("asks for another top-up where its funds are gone meanwhile", async () => {
    const account = poorAccount();
    const spender = keep(
      await startSeller({
        onPaid: async (paid) => {
          await executePayment(world.devnet(), paid);
          return false;
        },
      }),
    );
    // Both calls have read an empty balance before the top-up.
    const reads = countDown(2);
    const balanceOf = toFunctionSelector("balanceOf(address)").slice(2);
    const node = await startLyingNode(world.devnet().rpcUrl, ({ params }) => {
      if (JSON.stringify(params ?? []).includes(balanceOf)) reads.call();
      return undefined;
    });
    const rpcUrls = { [plasma]: keep(node).url };
    const spent = countDown(1);
    const repeated = formatChallenge(challengeOf());
    let unpaid = 0;
    const seller = keep(
      await startMppSeller({
        devnet: world.devnet(),
        challenge(count) {
          unpaid = count;
          // The first call's offer after its top-up, and the second call's after that.
          return count === 3 || count === 4 ? repeated : formatChallenge(challengeOf());
        },
        onPaid: async () => {
          await spent.done;
          return false;
        },
      }),
    );
    let asked = 0;
    const topUp = async () => {
      asked += 1;
      await reads.done;
      await world.devnet().mint({ to: account.address, amount: asked === 1 ? 2000n : 1000n });
      return true;
    };
    let isSpent = false;
    const wait = async () => {
      if (unpaid !== 4 || isSpent) return;
      isSpent = true;
      await createFetch({ account })(spender.url);
      spent.call();
      await Promise.race(calls);
    };
    const pay = createFetch({ account, rpcUrls, topUp, wait });
    const calls = [pay(seller.url), pay(seller.url)];
    for (const { status } of await Promise.all(calls)) expect(status).toBe(200);
    expect(asked).toBe(2);
  });

  it("keeps what its own top-up has brought", async () => {
    const account = poorAccount();
    await world.devnet().mint({ to: account.address, amount: 1000n });
    const repeated = formatChallenge(challengeOf());
    const executed = countDown(1);
    // Of the earlier payment, and of both calls: each of these reads an empty balance.
    const reads = countDown(3);
    const balanceOf = toFunctionSelector("balanceOf(address)").slice(2);
    const node = await startLyingNode(world.devnet().rpcUrl, ({ params }) => {
      if (JSON.stringify(params ?? []).includes(balanceOf)) reads.call();
      return undefined;
    });
    const release = countDown(1);
    const seller = keep(
      await startMppSeller({
        devnet: world.devnet(),
        challenge(count) {
          // Of an earlier payment without an answer yet, and of the first call after its top-up.
          return count === 1 || count === 4 ? repeated : formatChallenge(challengeOf());
        },
        async onPaid(paid, response, count) {
          if (count > 1) return false;
          const reference = await execute(world.devnet(), paid);
          executed.call();
          await release.done;
          sellByMpp(response, paid, { reference });
          return true;
        },
      }),
    );
    let asked = 0;
    const topUp = async () => {
      asked += 1;
      await reads.done;
      await world.devnet().mint({ to: account.address, amount: 1000n });
      return true;
    };
    const pay = createFetch({ account, rpcUrls: { [plasma]: keep(node).url }, topUp });
    const earlier = pay(seller.url);
    await executed.done;
    const calls = [pay(seller.url), pay(seller.url)];
    for (const { status } of await Promise.all(calls)) expect(status).toBe(200);
    release.call();
    expect((await earlier).status).toBe(200);
    expect(asked).toBe(2);
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
