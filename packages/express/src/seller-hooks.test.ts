import {
  decodePaymentRequired,
  headerName,
  plasma,
  plasmaUsdt0,
  stable,
  stableUsdt0,
} from "@coinslot/protocol";
import supertest from "supertest";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { PaymentMiddlewareOptions, PaymentOption } from "./index.ts";
import { createBuyer, fetchOffer } from "./testing/buyer.ts";
import { createPaperFacilitator } from "./testing/paper-facilitator.ts";
import { openShop, option, payTo, type Shop } from "./testing/shop.ts";

const opened: Shop[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((shop) => shop.close()));
});

async function open(
  config: {
    options?: PaymentMiddlewareOptions;
    accepts?: PaymentOption | PaymentOption[];
    facilitator?: ReturnType<typeof createPaperFacilitator>;
  } = {},
): Promise<Shop & { runs(): number }> {
  let runs = 0;
  const shop = await openShop({
    options: config.options,
    facilitator: config.facilitator,
    routes: { "GET /paid/:size": { accepts: config.accepts ?? option() } },
    serve(app) {
      app.get("/paid/:size", (request, response) => {
        runs += 1;
        response.json({ payment: request.payment ?? null });
      });
    },
  });
  opened.push(shop);
  return Object.assign(shop, { runs: () => runs });
}

function fail(): never {
  throw new Error("down at /etc/x");
}

describe("a seller's hook or option", () => {
  it("may serve a subscriber for free", async () => {
    const shop = await open({
      options: { grantAccess: async (request) => request.get("X-Subscriber") === "yes" },
    });
    const granted = await supertest(shop.url).get("/paid/1").set("X-Subscriber", "yes").expect(200);
    expect(granted.body).toEqual({ payment: null });
    await supertest(shop.url).get("/paid/1").expect(402);
  });

  it.each([
    ["grants access", { grantAccess: () => Promise.reject(new Error("down at /etc/x")) }],
    ["refuses payers", { refusePayer: () => Promise.reject(new Error("down at /etc/x")) }],
  ] satisfies [string, PaymentMiddlewareOptions][])(
    "closes the route when the hook %s throws",
    async (_case, options) => {
      const errors: unknown[] = [];
      const shop = await open({ options: { ...options, onError: (error) => errors.push(error) } });
      const { headers } = await createBuyer()
        .payFor(`${shop.url}/paid/1`)
        .catch(() => ({ headers: {} }));
      const answer = await supertest(shop.url).get("/paid/1").set(headers).expect(500);
      expect(answer.text).not.toContain("/etc/x");
      expect(errors.length).toBeGreaterThan(0);
      expect(shop.runs()).toBe(0);
    },
  );

  it("may refuse a payer before any reservation", async () => {
    const unwelcome = createBuyer();
    const shop = await open({
      options: {
        refusePayer: ({ payer, requirements }) =>
          payer === unwelcome.account.address.toLowerCase() && requirements.network === plasma
            ? "Not with us"
            : undefined,
      },
    });
    const { headers } = await unwelcome.payFor(`${shop.url}/paid/1`);
    const answer = await supertest(shop.url).get("/paid/1").set(headers).expect(403);
    expect(answer.body).toEqual({ error: "payer_refused", message: "Not with us" });
    expect(shop.facilitator.verifications).toBe(0);
    const welcome = await createBuyer().payFor(`${shop.url}/paid/1`);
    await supertest(shop.url).get("/paid/1").set(welcome.headers).expect(200);
  });

  it("may answer browsers with a page, with the offer in the header", async () => {
    const shop = await open({
      options: {
        unpaidAnswer: ({ request, accepts }) =>
          request.accepts(["json", "html"]) === "html"
            ? { contentType: "text/html; charset=utf-8", body: `<p>${accepts[0]?.amount}</p>` }
            : undefined,
      },
    });
    const page = await supertest(shop.url).get("/paid/1").set("Accept", "text/html").expect(402);
    expect(page.get("Content-Type")).toBe("text/html; charset=utf-8");
    expect(page.text).toBe("<p>1000</p>");
    expect(page.get(headerName.paymentRequired)).toBeDefined();
    const offer = await supertest(shop.url).get("/paid/1").set("Accept", "application/json");
    expect(offer.body).toMatchObject({ x402Version: 1 });
  });

  it("may set a price and a recipient per request, called once", async () => {
    let asked = 0;
    const shop = await open({
      accepts: option({
        price: async (request) => {
          asked += 1;
          return `$0.00${request.path.endsWith("/2") ? 2 : 1}`;
        },
        payTo: (request) => (request.path.endsWith("/2") ? plasmaUsdt0.address : payTo),
      }),
    });
    const offer = await fetchOffer(`${shop.url}/paid/2`, 2);
    expect(offer.accepts[0]?.requirements).toMatchObject({
      amount: "2000",
      payTo: plasmaUsdt0.address,
    });
    expect(asked).toBe(1);
    const small = await createBuyer().payFor(`${shop.url}/paid/1`);
    const refused = await supertest(shop.url).get("/paid/2").set(small.headers).expect(402);
    expect(refused.body).toMatchObject({ error: "No matching payment requirements" });
    await supertest(shop.url).get("/paid/1").set(small.headers).expect(200);
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("no price at /etc/x");
      },
    ],
    ["rounds to zero", () => "$0.00" as const],
    ["is no price", () => Object.assign({}, { amount: "one" }) as never],
  ])("closes the route when the price %s", async (_case, price) => {
    const shop = await open({ accepts: option({ price }) });
    const answer = await supertest(shop.url).get("/paid/1").expect(500);
    expect(answer.text).not.toContain("/etc/x");
    expect(shop.errors).toHaveLength(1);
  });

  it.each([
    ["The price", { accepts: option({ price: fail }) }, false],
    ["The recipient", { accepts: option({ payTo: fail }) }, false],
    ["grantAccess", { options: { grantAccess: fail } }, false],
    ["unpaidAnswer", { options: { unpaidAnswer: fail } }, false],
    ["refusePayer", { options: { refusePayer: fail } }, true],
  ] as const)(
    "is reported with its name, its route and its error when it throws: %s",
    async (title, config, isPaid) => {
      const errors: unknown[] = [];
      const onError = (error: unknown) => errors.push(error);
      const options = "options" in config ? config.options : {};
      const shop = await open({ ...config, options: { ...options, onError } });
      const { headers } = isPaid
        ? await createBuyer().payFor(`${shop.url}/paid/1`)
        : { headers: {} };
      await supertest(shop.url).get("/paid/1").set(headers).expect(500);
      expect(errors).toMatchObject([
        { message: `${title} of "GET /paid/:size" threw`, cause: { message: "down at /etc/x" } },
      ]);
    },
  );

  it("is reported on standard error by its name, without its message, when it throws", async () => {
    const lines: string[] = [];
    const spy = vi.spyOn(console, "error").mockImplementation((line) => void lines.push(line));
    const shop = await open({ accepts: option({ price: fail }), options: { onError: undefined } });
    await supertest(shop.url).get("/paid/1");
    spy.mockRestore();
    expect(lines).toEqual(['coinslot: The price of "GET /paid/:size" threw']);
  });

  it("receives each payer with its payment", async () => {
    const shop = await open();
    const buyer = createBuyer();
    const { headers } = await buyer.payFor(`${shop.url}/paid/1`);
    const answer = await supertest(shop.url).get("/paid/1").set(headers);
    expect(answer.body).toEqual({
      payment: {
        scheme: "exact",
        paymentFlow: "authorization",
        payer: buyer.account.address.toLowerCase(),
        amount: "1000",
        asset: plasmaUsdt0.address.toLowerCase(),
        network: plasma,
      },
    });
  });

  it("may waive a payment, after which the same payment buys another answer", async () => {
    let waives = true;
    const shop = await openShop({
      routes: { "GET /search": { accepts: option() } },
      serve(app) {
        app.get("/search", (request, response) => {
          if (waives && request.payment?.paymentFlow === "authorization") request.payment.waive();
          response.json({ hits: waives ? 0 : 1 });
        });
      },
    });
    opened.push(shop);
    const { headers } = await createBuyer().payFor(`${shop.url}/search`);
    const free = await supertest(shop.url).get("/search").set(headers);
    expect(free.body).toEqual({ hits: 0 });
    expect(free.get(headerName.paymentResponse)).toBeUndefined();
    expect(shop.facilitator.settled).toHaveLength(0);
    waives = false;
    const paid = await supertest(shop.url).get("/search").set(headers);
    expect(paid.body).toEqual({ hits: 1 });
    expect(shop.facilitator.settled).toHaveLength(1);
  });

  it("may offer several networks, and each version that the facilitator lists", async () => {
    const onStable = option({
      network: stable,
      price: { amount: "1500", asset: stableUsdt0.address, extra: { name: "USDT0", version: "1" } },
    });
    const both = createPaperFacilitator({ networks: [plasma, stable] });
    const shop = await open({ accepts: [option(), onStable], facilitator: both });
    for (const version of [1, 2] as const) {
      const { accepts } = await fetchOffer(`${shop.url}/paid/1`, version);
      expect(accepts.map(({ requirements }) => requirements.network)).toEqual([plasma, stable]);
      for (const offered of accepts) {
        const { headers } = await createBuyer().sign(offered);
        await supertest(shop.url).get("/paid/1").set(headers).expect(200);
      }
    }
    const onlyV2 = await open({ facilitator: createPaperFacilitator({ versions: [2] }) });
    expect((await fetchOffer(`${onlyV2.url}/paid/1`, 1)).accepts).toEqual([]);
    const onlyV1 = await open({ facilitator: createPaperFacilitator({ versions: [1] }) });
    const answer = await supertest(onlyV1.url).get("/paid/1");
    expect(answer.get(headerName.paymentRequired)).toBeUndefined();
    expect(answer.body).toMatchObject({ accepts: [{ network: plasma }] });
  });

  it("is chosen by the signature for two assets of one network, where version 1 names none", async () => {
    const other = option({
      price: {
        amount: "1000",
        asset: "0x779Ded0c9e1022225f8E0630b35a9b54bE713736",
        extra: { name: "Other", version: "2" },
      },
    });
    const shop = await open({ accepts: [option(), other] });
    const { accepts } = await fetchOffer(`${shop.url}/paid/1`, 1);
    for (const offered of accepts) {
      const { headers } = await createBuyer().sign(offered);
      const answer = await supertest(shop.url).get("/paid/1").set(headers).expect(200);
      expect(answer.body).toMatchObject({
        payment: { asset: offered.requirements.asset.toLowerCase() },
      });
    }
  });

  it("may write legacy network names, and accepts either name", async () => {
    const facilitator = createPaperFacilitator({ networks: ["base", stable] });
    const onBase = option({ network: "eip155:8453" });
    const shop = await open({
      accepts: [onBase, option({ network: stable })],
      facilitator,
      options: { legacyNetworkNames: true },
    });
    const body: unknown = (await supertest(shop.url).get("/paid/1")).body;
    // The first clients know "base", and read no offer that names a network unknown to them.
    expect(body).toMatchObject({ accepts: [{ network: "base" }] });
    const { accepts } = await fetchOffer(`${shop.url}/paid/1`, 1);
    const [first] = accepts;
    if (first?.x402Version !== 1) throw new Error("No offer");
    for (const networkName of ["base", "eip155:8453"]) {
      const { headers } = await createBuyer().sign({ ...first, networkName });
      await supertest(shop.url).get("/paid/1").set(headers).expect(200);
    }
  });

  it("keeps a network without a legacy name out of version 1 where another has one, and still sells it", async () => {
    const facilitator = createPaperFacilitator({ networks: [plasma, stable] });
    const shop = await open({
      accepts: [option(), option({ network: stable })],
      facilitator,
      options: { legacyNetworkNames: true },
    });
    const response = await supertest(shop.url).get("/paid/1");
    const { accepts } = decodePaymentRequired(response.get("PAYMENT-REQUIRED") ?? "");
    expect(accepts.map(({ requirements }) => requirements.network)).toEqual([plasma, stable]);
    expect(response.body).toMatchObject({ accepts: [{ network: "stable" }] });
    const [onPlasma] = accepts;
    if (onPlasma === undefined) throw new Error("No offer");
    const { requirements } = onPlasma;
    const { headers } = await createBuyer().sign({
      ...{ x402Version: 1, requirements, networkName: plasma },
      resourceUrl: `${shop.url}/paid/1`,
    });
    await supertest(shop.url).get("/paid/1").set(headers).expect(200);
  });

  it("trusts the proxies that the application trusts", async () => {
    const shop = await open();
    const forwarded = { "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https" };
    const answer = await supertest(shop.url).get("/paid/1").set(forwarded);
    expect(answer.body).toMatchObject({ accepts: [{ resource: `${shop.url}/paid/1` }] });
    const behind = await openShop({
      routes: { "GET /paid": { accepts: option() } },
      before: (app) => app.set("trust proxy", "loopback"),
      serve: () => undefined,
    });
    opened.push(behind);
    const proxied = await supertest(behind.url)
      .get("/paid")
      .set({ "X-Forwarded-Host": "api.example", "X-Forwarded-Proto": "https" });
    expect(proxied.body).toMatchObject({
      accepts: [{ resource: "https://api.example/paid" }],
    });
  });

  it("keeps the offer small for any URL", async () => {
    const shop = await open();
    const answer = await supertest(shop.url)
      .get(`/paid/1?${"x".repeat(10_000)}`)
      .expect(402);
    expect((answer.get(headerName.paymentRequired) ?? "").length).toBeLessThan(4096);
  });
});
