import type { ServerResponse } from "node:http";
import { plasma, plasmaUsdt0, stable, stableUsdt0 } from "@coinslot/protocol";
import { toFunctionSelector } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import type { TopUp, TopUpRequest } from "./index.ts";
import { countSignatures } from "./testing/counting-account.ts";
import { executePayment } from "./testing/execute-payment.ts";
import { listen } from "./testing/listen.ts";
import { startLyingNode } from "./testing/lying-node.ts";
import {
  type PaidRequest,
  reject,
  requirements,
  type Seller,
  startSeller,
} from "./testing/seller.ts";
import { useWorld } from "./testing/world.ts";

const world = useWorld();
const { keep, createFetch } = world;

function poorAccount() {
  return countSignatures(privateKeyToAccount(generatePrivateKey()));
}

/** Brings the funds at once, and records the requests. */
function mintOnDemand(asked: TopUpRequest[] = []): TopUp {
  return async (request) => {
    asked.push(request);
    const amount = request.needs[0]?.amount ?? 0n;
    await world.devnet().mint({ to: request.payer, amount });
    return true;
  };
}

describe("a top-up", () => {
  it("is requested when no network has the funds; then the offer is fetched again and paid", async () => {
    const seller = keep(await startSeller());
    const asked: TopUpRequest[] = [];
    const account = poorAccount();
    const response = await createFetch({ account, topUp: mintOnDemand(asked) })(seller.url);
    expect(response.status).toBe(200);
    expect(seller.unpaid).toHaveLength(2);
    expect(account.signatures()).toBe(1);
    expect(asked).toMatchObject([
      {
        payer: account.address,
        host: new URL(seller.url).host,
        needs: [{ network: plasma, asset: plasmaUsdt0.address, amount: 1000n, balance: 0n }],
      },
    ]);
  });

  it("is not requested when the payer has the funds, nor for an amount over budget", async () => {
    const never: TopUp = () => Promise.reject(new Error("An unexpected top-up"));
    const cheap = keep(await startSeller());
    expect((await createFetch({ topUp: never })(cheap.url)).status).toBe(200);
    const dear = keep(await startSeller({ accepts: () => [requirements({ amount: "999999" })] }));
    const call = createFetch({ account: poorAccount(), topUp: never })(dear.url);
    await expect(call).rejects.toMatchObject({ code: "over_budget" });
  });

  it("is not requested while the funds may be behind an unreachable endpoint", async () => {
    const away = keep(await listen((_, response) => void response.writeHead(503).end()));
    const accepts = () => [
      requirements(),
      requirements({ network: stable, asset: stableUsdt0.address }),
    ];
    const seller = keep(await startSeller({ accepts }));
    const rpcUrls = { [plasma]: world.devnet().rpcUrl, [stable]: away.url };
    const asked: TopUpRequest[] = [];
    const topUp = mintOnDemand(asked);
    const change = { account: poorAccount(), rpcUrls, balanceTimeoutMs: 2_000, topUp };
    const call = createFetch(change)(seller.url);
    await expect(call).rejects.toMatchObject({ code: "balance_unreadable" });
    expect(asked).toEqual([]);
  });

  it("ends with insufficient funds when it is declined, or brings too little", async () => {
    const seller = keep(await startSeller());
    for (const answer of [false, true]) {
      let count = 0;
      const topUp: TopUp = async () => {
        count += 1;
        return answer;
      };
      const call = createFetch({ account: poorAccount(), topUp })(seller.url);
      await expect(call).rejects.toMatchObject({ code: "insufficient_funds" });
      expect(count).toBe(1);
    }
  });

  it("is waited for at an endpoint that lags behind the arrival", async () => {
    const seller = keep(await startSeller());
    let calls = 0;
    const lagging = keep(
      await listen(async ({ body }, response) => {
        const isBalance = `${body}`.includes("eth_call");
        if (isBalance) calls += 1;
        const headers = { "content-type": "application/json" };
        const { rpcUrl } = world.devnet();
        const answer = await fetch(rpcUrl, { method: "POST", headers, body });
        const given: unknown = await answer.json();
        // The first lookup is before the top-up, the others are after it.
        const isLate = isBalance && calls <= 4;
        const reply = isLate ? Object.assign({}, given, { result: `0x${"0".repeat(64)}` }) : given;
        response.writeHead(200, headers).end(JSON.stringify(reply));
      }),
    );
    const asked: TopUpRequest[] = [];
    const change = { rpcUrls: { [plasma]: lagging.url }, topUp: mintOnDemand(asked) };
    const response = await createFetch({ account: poorAccount(), ...change })(seller.url);
    expect(response.status).toBe(200);
    expect(asked).toHaveLength(1);
    expect(calls).toBe(5);
  });

  it("is not waited for after the call is aborted", async () => {
    const seller = keep(await startSeller());
    const controller = new AbortController();
    const wait = async () => controller.abort(new Error("Enough"));
    const change = { account: poorAccount(), topUp: async () => true, wait };
    const call = createFetch(change)(seller.url, { signal: controller.signal });
    await expect(call).rejects.toThrow("Enough");
  });

  it.each([
    ["dearer", { amount: "1001" }],
    ["for another recipient", { payTo: `0x${"ee".repeat(20)}` as const }],
  ])("is not spent on an offer that has become %s meanwhile", async (_name, change) => {
    let offers = 0;
    const accepts = () => [requirements(offers++ === 0 ? {} : change)];
    const seller = keep(await startSeller({ accepts }));
    const account = poorAccount();
    const call = createFetch({ account, topUp: mintOnDemand() })(seller.url);
    await expect(call).rejects.toMatchObject({ code: "offer_changed" });
    expect(account.signatures()).toBe(0);
  });
});

describe("top-ups within a budget", () => {
  const oneCoin = { perPayment: "$0.001", perHost: "$0.001", perDay: "$0.001" };
  /** Its payments move nothing, so the funds of one top-up remain for the next purchase. */
  const startSellerAt = async (...prices: string[]) =>
    keep(await startSeller({ accepts: () => prices.map((amount) => requirements({ amount })) }));

  it("request nothing when the day's budget has no room for the payment", async () => {
    const [cheap, dear] = [await startSellerAt("1000"), await startSellerAt("1500")];
    const asked: TopUpRequest[] = [];
    const account = poorAccount();
    const budget = { perPayment: "$0.002", perHost: "$0.002", perDay: "$0.002" };
    const pay = createFetch({ account, budget, topUp: mintOnDemand(asked) });
    expect((await pay(cheap.url)).status).toBe(200);
    await expect(pay(dear.url)).rejects.toMatchObject({ code: "over_budget" });
    expect(asked).toHaveLength(1);
    expect(account.signatures()).toBe(1);
  });

  it("request no more than the budget has room for", async () => {
    const [first, second] = [
      await startSellerAt("1000"),
      await startSellerAt("2000", "1500", "1400"),
    ];
    const asked: TopUpRequest[] = [];
    const budget = { perPayment: "$0.002", perHost: "$0.0025", perDay: "$0.0025" };
    const pay = createFetch({ account: poorAccount(), budget, topUp: mintOnDemand(asked) });
    await pay(first.url);
    expect((await pay(second.url)).status).toBe(200);
    expect(asked.at(-1)?.needs.map(({ amount }) => amount)).toEqual([1400n, 1500n]);
  });

  it("reserve the room meanwhile, so that no other is requested in vain", async () => {
    const seller = await startSellerAt("1000");
    const asked: TopUpRequest[] = [];
    const pay = createFetch({
      account: poorAccount(),
      budget: oneCoin,
      topUp: async (request) => {
        // While the first waits, one for another host name.
        const other = pay(seller.url.replace("127.0.0.1", "localhost"));
        await expect(other).rejects.toMatchObject({ code: "over_budget" });
        return mintOnDemand(asked)(request);
      },
    });
    expect((await pay(seller.url)).status).toBe(200);
    expect(asked).toHaveLength(1);
  });

  it.each([
    ["declined", async () => false],
    ["failed", () => Promise.reject(new Error("no bridge"))],
  ] satisfies [string, () => Promise<boolean>][])(
    "free the room when they have %s",
    async (_name, topUp) => {
      const seller = await startSellerAt("1000");
      let attempts = 0;
      const pay = createFetch({
        account: poorAccount(),
        budget: oneCoin,
        topUp: (request) => (attempts++ === 0 ? topUp() : mintOnDemand()(request)),
      });
      await expect(pay(seller.url)).rejects.toThrow();
      expect((await pay(seller.url)).status).toBe(200);
    },
  );

  /** A seller that raises its price by one unit each time. */
  const startGreedySeller = () => {
    let price = 1000;
    const accepts = () => [requirements({ amount: String(price++) })];
    return startSeller({ accepts }).then(keep);
  };

  it("count for a day when the seller then asked for more, as it was paid for", async () => {
    const seller = await startGreedySeller();
    const asked: TopUpRequest[] = [];
    const budget = { perPayment: "$0.0015", perHost: "$0.0025", perDay: "$0.0025" };
    const pay = createFetch({ account: poorAccount(), budget, topUp: mintOnDemand(asked) });
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "offer_changed" });
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "offer_changed" });
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "over_budget" });
    expect(asked).toHaveLength(2);
  });

  it("stop after three for a seller that keeps raising its price", async () => {
    const seller = await startGreedySeller();
    const asked: TopUpRequest[] = [];
    // Its balance reads as empty each time, as after an insufficient top-up.
    const topUp: TopUp = async (request) => {
      asked.push(request);
      return true;
    };
    const pay = createFetch({ account: poorAccount(), topUp });
    for (let count = 0; count < 30; count += 1) {
      await expect(pay(seller.url)).rejects.toMatchObject({ code: "offer_changed" });
    }
    expect(asked).toHaveLength(3);
  });

  /** A seller that offers dearer each time until a top-up, and then for one unit. */
  function startBaitingSeller(bait: { isFree?: true; onPaid?: typeof refuse } = {}) {
    let count = 0;
    return startSeller({
      ...bait,
      accepts: () => {
        const amount = count % 2 === 1 ? 1000 * 3 ** ((count - 1) / 2) : 1;
        return [requirements({ amount: String(amount) })];
      },
      onUnpaid: (_request, response) => {
        count += 1;
        if (!bait.isFree || count % 2 === 1) return false;
        response.end("{}");
        return true;
      },
    }).then(keep);
  }

  const baits: [string, () => Promise<Seller>][] = [
    ["is then free", () => startBaitingSeller({ isFree: true })],
    ["then sells for what was there before", () => startBaitingSeller()],
    ["then refuses the payment", () => startBaitingSeller({ onPaid: refuse })],
    ["then loses the answer", () => startBaitingSeller({ onPaid: hangUp })],
  ];
  it.each(baits)("stop after three for a seller that %s", async (_name, start) => {
    const seller = await start();
    const account = poorAccount();
    await world.devnet().mint({ to: account.address, amount: 1n });
    const asked: TopUpRequest[] = [];
    const pay = createFetch({ account, topUp: mintOnDemand(asked) });
    for (let count = 0; count < 5; count += 1) await pay(seller.url).catch(() => undefined);
    expect(asked).toHaveLength(3);
  });

  it.each([
    ["are each brought", 1n, 5],
    ["of the first are enough for all", 5n, 1],
  ])("for calls at the same time %s: all are paid", async (_name, times, count) => {
    const seller = keep(
      await startSeller({
        onPaid: async (paid) => {
          await executePayment(world.devnet(), paid);
          return false;
        },
      }),
    );
    let reads = 0;
    let readByAll = () => {};
    const allRead = new Promise<void>((resolve) => {
      readByAll = resolve;
    });
    const balanceOf = toFunctionSelector("balanceOf(address)").slice(2);
    const node = await startLyingNode(world.devnet().rpcUrl, ({ params }) => {
      if (JSON.stringify(params ?? []).includes(balanceOf)) reads += 1;
      if (reads === 5) readByAll();
      return undefined;
    });
    const rpcUrls = { [plasma]: keep(node).url };
    const account = poorAccount();
    const asked: TopUpRequest[] = [];
    const topUp: TopUp = async (request) => {
      asked.push(request);
      await allRead;
      await world.devnet().mint({ to: account.address, amount: times * 1000n });
      return true;
    };
    const pay = createFetch({ account, rpcUrls, topUp });
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => pay(seller.url)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(asked).toHaveLength(count);
  });
});

function refuse(paid: PaidRequest, response: ServerResponse): boolean {
  reject(response, paid, "no");
  return true;
}

function hangUp(_paid: PaidRequest, response: ServerResponse): boolean {
  response.destroy();
  return true;
}
