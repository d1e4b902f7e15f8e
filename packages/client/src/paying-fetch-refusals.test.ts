import { startDevnet } from "@coinslot/devnet";
import { plasma, stable, stableUsdt0 } from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import { OfferRefusedError, PaymentError, type PaymentErrorCode } from "./index.ts";
import { countSignatures } from "./testing/counting-account.ts";
import { type Listening, listen } from "./testing/listen.ts";
import { answer402, requirements, type Seller, startSeller } from "./testing/seller.ts";
import { useWorld } from "./testing/world.ts";

const world = useWorld();
const { keep, createFetch } = world;

/** The error with which a call ends, after making sure that nothing was signed and nothing sent. */
async function refusalOf(call: Promise<Response>, seller?: Seller): Promise<PaymentError> {
  const error = await call.then(
    ({ status }) => new Error(`It was answered ${status}`),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof PaymentError)) throw error;
  expect(error.moneyMayHaveMoved).toBe(false);
  expect(world.account().signatures()).toBe(0);
  expect(seller?.paid ?? []).toHaveLength(0);
  return error;
}

const foreignToken = "0x00000000000000000000000000000000000000aa";

describe.each([1, 2] as const)("in version %i, no signature leaves for", (version) => {
  const cases: [string, PaymentErrorCode, Parameters<typeof requirements>[0]][] = [
    ["a price above the budget", "over_budget", { amount: "100001" }],
    ["a price beyond all numbers", "over_budget", { amount: (2n ** 256n - 1n).toString() }],
    ["another asset", "unknown_asset", { asset: foreignToken }],
    ["other decimals", "asset_mismatch", { extra: { name: "USDT0", version: "1", decimals: 18 } }],
    ["another domain name", "asset_mismatch", { extra: { name: "USDC", version: "1" } }],
    ["another domain version", "asset_mismatch", { extra: { name: "USDT0", version: 1 } }],
    ["a network that is not configured", "unsupported_offer", { network: stable }],
    ["another scheme", "unsupported_offer", { scheme: "upto" }],
    [
      "another way to transfer",
      "unsupported_offer",
      { extra: { name: "USDT0", version: "1", assetTransferMethod: "permit2" } },
    ],
  ];
  it.each(cases)("%s", async (_name, code, change) => {
    const seller = keep(await startSeller({ version, accepts: () => [requirements(change)] }));
    const error = await refusalOf(createFetch()(seller.url), seller);
    expect(error).toBeInstanceOf(OfferRefusedError);
    expect(error.code).toBe(code);
    expect(world.states()).toEqual([]);
  });

  it("an offer whose resource is somebody else's", async () => {
    const resource = () => "https://other.example/weather";
    const seller = keep(await startSeller({ version, resource }));
    expect((await refusalOf(createFetch()(seller.url), seller)).code).toBe("resource_mismatch");
  });

  it("an offer in which nothing can be read", async () => {
    const seller = keep(
      await startSeller({ version, offer: { accepts: [null, 7, { scheme: "exact" }] } }),
    );
    expect((await refusalOf(createFetch()(seller.url), seller)).code).toBe("unsupported_offer");
  });
});

describe("an entry that is refused", () => {
  it("does not stand in the way of one that may be paid, and a broken one neither", async () => {
    const offer = {
      accepts: [
        { scheme: "exact" },
        requirements({ asset: foreignToken, amount: "1" }),
        requirements({ amount: "999999999" }),
        requirements({ amount: "2000" }),
        requirements({ amount: "1500" }),
      ],
    };
    const seller = keep(await startSeller({ offer }));
    expect((await createFetch()(seller.url)).status).toBe(200);
    expect(seller.paid[0]?.authorization.value).toBe(1500n);
  });

  it("is listed with its reason, and the one that came furthest gives the error its code", async () => {
    const accepts = () => [
      requirements({ asset: foreignToken }),
      requirements({ amount: "999999999" }),
      requirements({ network: stable }),
    ];
    const seller = keep(await startSeller({ accepts }));
    const error = await refusalOf(createFetch()(seller.url), seller);
    expect(error).toBeInstanceOf(OfferRefusedError);
    if (!(error instanceof OfferRefusedError)) return;
    expect(error.code).toBe("over_budget");
    expect(error.message).toBe("$999.999999 is more than the budget allows for one payment: $0.1");
    expect(error.refusals.map(({ code }) => code)).toEqual([
      "unknown_asset",
      "over_budget",
      "unsupported_offer",
    ]);
  });
});

describe("funds", () => {
  it("that are on no offered network end it before a signature", async () => {
    const seller = keep(await startSeller({ accepts: () => [requirements({ amount: "100000" })] }));
    const poor = world.devnet().accounts.others[0];
    if (poor === undefined) throw new Error("The devnet has no further account");
    const call = createFetch({ account: poor })(seller.url);
    expect((await refusalOf(call, seller)).code).toBe("insufficient_funds");
  });

  it("that no endpoint tells end it in time, and the error names no endpoint", async () => {
    const hanging = keep(await listen(() => {}));
    const broken = keep(await listen((_, response) => void response.writeHead(401).end("no")));
    const rpcUrls = { [plasma]: [`${hanging.url}/key-1234`, `${broken.url}/key-5678`] };
    const seller = keep(await startSeller());
    const call = createFetch({ rpcUrls, balanceTimeoutMs: 300 })(seller.url);
    const error = await refusalOf(call, seller);
    expect(error.code).toBe("balance_unreadable");
    expect(`${error.stack} ${String(error.cause)}`).not.toMatch(/key-|127\.0\.0\.1/);
  });
});

describe("the budget", () => {
  it("counts per host, over all its ports, and names the limit", async () => {
    const first = keep(await startSeller({ accepts: () => [requirements({ amount: "100000" })] }));
    const second = keep(await startSeller());
    const pay = createFetch({ budget: { perHost: "$0.20" } });
    await pay(first.url);
    await pay(first.url);
    const error = await pay(second.url).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "over_budget" });
    expect(String(error)).toContain("for one host in a day: $0.2");
    // The same machine under its other name is another host.
    const other = second.url.replace("127.0.0.1", "localhost");
    expect((await pay(other)).status).toBe(200);
    expect(world.account().signatures()).toBe(3);
  });

  it("counts per day over all hosts and both networks, and forgets after a day", async () => {
    const stableNet = await startDevnet({ chainId: 988 });
    try {
      await stableNet.mint({ to: world.account().address, amount: 1_000_000n });
      const onPlasma = keep(
        await startSeller({ accepts: () => [requirements({ amount: "60000" })] }),
      );
      const onStable = keep(
        await startSeller({
          accepts: () => [
            requirements({ network: stable, asset: stableUsdt0.address, amount: "60000" }),
          ],
        }),
      );
      let now = 1_700_000_000_000;
      const pay = createFetch({
        now: () => now,
        budget: { perDay: "$0.10" },
        rpcUrls: { [plasma]: world.devnet().rpcUrl, [stable]: stableNet.rpcUrl },
      });
      await pay(onPlasma.url);
      now += 23 * 3_600_000;
      await expect(pay(onStable.url.replace("127.0.0.1", "localhost"))).rejects.toMatchObject({
        code: "over_budget",
      });
      now += 2 * 3_600_000;
      expect((await pay(onStable.url)).status).toBe(200);
    } finally {
      await stableNet.stop();
    }
  });

  it("cannot be overspent by parallel requests", async () => {
    const seller = keep(await startSeller({ accepts: () => [requirements({ amount: "30000" })] }));
    const pay = createFetch({ budget: { perDay: "$0.10" } });
    const calls = await Promise.allSettled(Array.from({ length: 10 }, () => pay(seller.url)));
    expect(calls.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
    expect(world.account().signatures()).toBe(3);
    for (const call of calls) {
      if (call.status === "rejected") expect(call.reason).toMatchObject({ code: "over_budget" });
    }
  });

  it("spends a token that it names, by its own limits and decimals", async () => {
    const { devnet } = world;
    const token = await devnet().deployToken({ name: "Points", version: "3", decimals: 2 });
    await devnet().mint({ to: world.account().address, amount: 1000n, token });
    const points = { address: token, name: "Points", version: "3", decimals: 2 };
    const limits = { perPayment: 50n, perHost: 120n, perDay: 120n };
    const pay = createFetch({ budget: { assets: [{ network: plasma, ...points, limits }] } });
    const sellFor = async (amount: string, decimals: number) => {
      const extra = { name: "Points", version: "3", decimals };
      const accepts = () => [requirements({ asset: token, amount, extra })];
      return keep(await startSeller({ accepts })).url;
    };
    await expect(pay(await sellFor("51", 2))).rejects.toMatchObject({ code: "over_budget" });
    await expect(pay(await sellFor("50", 6))).rejects.toMatchObject({ code: "asset_mismatch" });
    expect((await pay(await sellFor("50", 2))).status).toBe(200);
    expect((await pay(await sellFor("50", 2))).status).toBe(200);
    await expect(pay(await sellFor("50", 2))).rejects.toMatchObject({ code: "over_budget" });
    // A list of assets is the whole list.
    const usdt0 = keep(await startSeller());
    await expect(pay(usdt0.url)).rejects.toMatchObject({ code: "unknown_asset" });
  });

  it("is free again when the account does not sign", async () => {
    const seller = keep(await startSeller({ accepts: () => [requirements({ amount: "100000" })] }));
    let isLocked = true;
    const account = countSignatures(world.devnet().accounts.buyer, async () => {
      if (isLocked) throw new Error("The wallet is locked");
    });
    const pay = createFetch({ account, budget: { perDay: "$0.10" } });
    const error = await refusalOf(pay(seller.url), seller);
    expect(error).toMatchObject({
      code: "signing_failed",
      cause: { message: "The wallet is locked" },
    });
    isLocked = false;
    expect((await pay(seller.url)).status).toBe(200);
    expect(world.states()).toEqual(["booked", "released", "booked", "signed", "sent", "settled"]);
  });

  it("is free again when what the seller wants repeated is too long for a header", async () => {
    const offer = { extensions: { novel: "x".repeat(7000) } };
    const seller = keep(await startSeller({ offer }));
    await expect(createFetch()(seller.url)).rejects.toMatchObject({ code: "payment_too_large" });
    expect(seller.paid).toHaveLength(0);
    expect(world.states()).toEqual(["booked", "released"]);
  });
});

describe("redirects", () => {
  function redirectTo(target: () => string, status = 307): Promise<Listening> {
    return listen((_, response) => void response.writeHead(status, { Location: target() }).end());
  }

  it("to another origin that asks for payment end it", async () => {
    const seller = keep(await startSeller());
    const decoy = keep(await redirectTo(() => seller.url));
    expect((await refusalOf(createFetch()(decoy.url), seller)).code).toBe("redirected");
  });

  it("of another method end it, even on the same origin", async () => {
    const seller = keep(
      await startSeller({
        onUnpaid: (request, response) => {
          if (request.url !== "/old") return false;
          response.writeHead(307, { Location: "/new" }).end();
          return true;
        },
      }),
    );
    const call = createFetch()(`${seller.url}/old`, { method: "POST", body: "x" });
    expect((await refusalOf(call, seller)).code).toBe("redirected");
  });

  it("on the same origin lead a GET to what is paid", async () => {
    const seller = keep(
      await startSeller({
        onUnpaid: (request, response) => {
          if (request.url !== "/old") return false;
          response.writeHead(302, { Location: "/new" }).end();
          return true;
        },
      }),
    );
    expect((await createFetch()(`${seller.url}/old`)).status).toBe(200);
    expect(seller.paid.map(({ request }) => request.url)).toEqual(["/new"]);
  });

  it("of a paid request are not followed: the payment goes nowhere else", async () => {
    const other = keep(await startSeller());
    const seller = keep(
      await startSeller({
        onPaid: (_, response) => {
          response.writeHead(307, { Location: other.url }).end();
          return true;
        },
      }),
    );
    const response = await createFetch()(seller.url);
    expect(response.status).toBe(307);
    expect(other.unpaid).toHaveLength(0);
    expect(other.paid).toHaveLength(0);
    expect(world.account().signatures()).toBe(1);
  });
});

describe("plain HTTP", () => {
  // A host that is not this machine, without a network: the requests are answered here.
  function elsewhere(seller: Seller): typeof fetch {
    return (input, init) => {
      const url = new URL(input instanceof Request ? input.url : input);
      return fetch(new URL(url.pathname, seller.url), init);
    };
  }

  it("is not paid over, unless that is allowed; free answers are fine", async () => {
    const seller = keep(
      await startSeller({
        resource: () => "http://shop.example/",
        onUnpaid: (request, response) => {
          if (request.url !== "/free") return false;
          response.end("free");
          return true;
        },
      }),
    );
    const options = {
      fetch: async (...args: Parameters<typeof fetch>) => {
        const response = await elsewhere(seller)(...args);
        return new Response(response.body, response);
      },
    };
    const pay = createFetch(options);
    expect(await (await pay("http://shop.example/free")).text()).toBe("free");
    expect((await refusalOf(pay("http://shop.example/"), seller)).code).toBe("insecure_url");
    const insecure = createFetch({ ...options, allowInsecureHttp: true });
    expect((await insecure("http://shop.example/")).status).toBe(200);
    expect((await pay("https://shop.example/")).status).toBe(200);
  });
});

describe("a body that is too long to be kept", () => {
  it("streams through to what is free, and is not paid for", async () => {
    const server = keep(
      await listen((request, response) => {
        if (request.url === "/free") return void response.end(String(request.body.length));
        const resource = `http://${request.headers.host}/`;
        answer402(response, 2, { resource, accepts: [requirements()] });
      }),
    );
    const pay = createFetch({ maxBodyBytes: 1000 });
    const post = (path: string, size: number) =>
      pay(`${server.url}${path}`, {
        method: "POST",
        body: new Blob(["x".repeat(size)]).stream(),
        duplex: "half",
      });
    expect(await (await post("/free", 300_000)).text()).toBe("300000");
    expect((await refusalOf(post("/paid", 1001))).code).toBe("body_too_large");
  });
});

describe("an aborted call", () => {
  it("throws its reason and pays nothing, at every moment before the payment", async () => {
    const seller = keep(await startSeller());
    for (const moment of ["booked", "signed"]) {
      const controller = new AbortController();
      const states: string[] = [];
      const pay = createFetch({
        onPayment: ({ state }) => {
          states.push(state);
          if (state === moment) controller.abort(new Error("Enough"));
        },
      });
      await expect(pay(seller.url, { signal: controller.signal })).rejects.toThrow("Enough");
      expect(states.at(-1)).toBe("released");
    }
    await expect(createFetch()(seller.url, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: "AbortError",
    });
    expect(seller.paid).toHaveLength(0);
  });
});

describe("a URL with credentials", () => {
  it("is refused as by fetch, without repeating them", async () => {
    const error = await createFetch()("https://user:hunter2@shop.example/").catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(TypeError);
    expect(String(error)).not.toContain("hunter2");
  });
});
