import { createReadStream } from "node:fs";
import { ConfigurationError, decodePaymentRequired, plasmaUsdt0 } from "@coinslot/protocol";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import { type PaymentRoutes, paymentMiddleware, type RoutePayment } from "../index.ts";
import { SellerFunctionError } from "../offer/seller-function-error.ts";
import { createBuyer, fetchOffer } from "../testing/buyer.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { openShop, option, type Shop } from "../testing/shop.ts";

const opened: Shop[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((shop) => shop.close()));
});

/** Options that TypeScript would refuse, as plain JavaScript may pass them. */
function problemsOf(...parameters: unknown[]): readonly string[] {
  const [routes, facilitator = createPaperFacilitator(), ...rest] = parameters;
  try {
    Reflect.apply(paymentMiddleware, undefined, [routes, facilitator, ...rest]);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
  return [];
}

async function sell(payment: RoutePayment): Promise<Shop> {
  const routes: PaymentRoutes = { "GET /paid": payment };
  const shop = await openShop({
    routes,
    serve: (app) => app.get("/paid", (_request, response) => void response.send("content")),
  });
  opened.push(shop);
  return shop;
}

const { address: asset, name, version } = plasmaUsdt0;
const price = { amount: "1000", asset, extra: { name, version } } as const;

describe("a route written for the reference middleware", () => {
  it("is refused with the name of each unsupported member, all at once", () => {
    const accepts = {
      ...option(),
      scheme: "exact",
      discount: 3,
      price: { ...price, decimals: 6, extra: { name, version, paymentFlow: "upfront" } },
      extra: { assetTransferMethod: "permit2" },
      maxTimeoutSeconds: 66,
    };
    const route = {
      accepts,
      serviceName: "Weather",
      tags: ["weather"],
      iconUrl: "https://shop.example/icon.png",
      customPaywallHtml: "<p>Pay</p>",
      settlementFailedResponseBody: () => ({ contentType: "text/plain", body: "no" }),
      extensions: { bazaar: {} },
      resource: "/weather",
      unpaidResponseBody: "Pay first",
    };
    expect(problemsOf({ "GET /a": route })).toEqual([
      '"GET /a": has an unknown member: serviceName',
      '"GET /a": has an unknown member: tags',
      '"GET /a": has an unknown member: iconUrl',
      '"GET /a": has an unknown member: customPaywallHtml',
      '"GET /a": has an unknown member: settlementFailedResponseBody',
      '"GET /a": has an unknown member: extensions',
      '"GET /a": accepts has an unknown member: discount',
      '"GET /a": accepts.maxTimeoutSeconds is 66, and must exceed 66: the handler\'s 60 seconds and 6 for settling',
      '"GET /a": accepts.extra.assetTransferMethod must be "eip3009": no other is settled',
      '"GET /a": accepts.price has an unknown member: decimals',
      '"GET /a": accepts.price extra.paymentFlow is "upfront", and the route\'s is "authorization": write paymentFlow beside accepts',
      '"GET /a": resource must be an absolute URL of http or https, of at most 2048 characters',
      '"GET /a": unpaidResponseBody must be a function',
    ]);
  });

  it("is refused without a key, with its pages, and with the reference's server", () => {
    expect(problemsOf({ accepts: option() })).toEqual([
      "The routes are one payment without a key: paymentMiddleware.route sells whatever reaches it",
    ]);
    const routes = { "GET /a": { accepts: option() } };
    expect(problemsOf(routes, undefined, { appName: "Shop", testnet: true })).toEqual([
      "options.appName is unknown",
      "options.testnet is unknown",
    ]);
    expect(problemsOf(routes, { register: () => undefined })).toEqual([
      "the facilitator must have verify, settle and getSupported",
    ]);
  });

  it.each(["GET /users/[id]", "GET /users/[id]/posts", "/[slug]", "GET /users/{id}", "/{slug}/a"])(
    "is refused with the parameter of %s, which either Express would read as something else",
    (key) => {
      expect(problemsOf({ [key]: { accepts: option() } })).toEqual([
        expect.stringMatching(/has a parameter in brackets: write ":(id|slug)"/),
      ]);
    },
  );

  it("offers the timeout of each payment option, and the route's for the others", async () => {
    const accepts = [option({ maxTimeoutSeconds: 120 }), option()];
    const shop = await sell({ accepts, maxTimeoutSeconds: 200 });
    for (const version of [1, 2] as const) {
      const offer = await fetchOffer(`${shop.url}/paid`, version);
      expect(offer.accepts.map(({ requirements }) => requirements.maxTimeoutSeconds)).toEqual([
        120, 200,
      ]);
    }
  });

  it("adds its extra members to the offer, and sells with them", async () => {
    const token = { amount: "1000", asset, extra: { name: "other", version, decimals: 6 } };
    const accepts = option({
      price: token,
      extra: { name, paymentFlow: "authorization", note: { of: ["ours"] } },
    });
    const shop = await sell({ accepts });
    const extra = { name, version, decimals: 6, note: { of: ["ours"] } };
    for (const version of [1, 2] as const) {
      const offer = await fetchOffer(`${shop.url}/paid`, version);
      expect(offer.accepts[0]?.requirements.extra).toEqual(extra);
      const { headers } = await createBuyer().payFor(`${shop.url}/paid`, { version });
      await supertest(shop.url).get("/paid").set(headers).expect(200);
    }
  });

  it("states upfront in extra where the route is sold so", async () => {
    const accepts = option({ extra: { paymentFlow: "upfront" } });
    const shop = await sell({ accepts, paymentFlow: "upfront" });
    const offer = await fetchOffer(`${shop.url}/paid`, 2);
    expect(offer.accepts[0]?.requirements.extra).toMatchObject({ paymentFlow: "upfront" });
  });

  it.each([
    [0.001, "1000"],
    [2, "2000000"],
    [0.1, "100000"],
  ])("accepts the number %d as a price in dollars", async (number, amount) => {
    const shop = await sell({ accepts: option({ price: number }) });
    const offer = await fetchOffer(`${shop.url}/paid`, 2);
    expect(offer.accepts[0]?.requirements.amount).toBe(amount);
  });

  it.each([0.1 + 0.2, 1e-7, 0, -1, Number.NaN, Number.POSITIVE_INFINITY])(
    "refuses the number %d as a price",
    (number) => {
      expect(problemsOf({ "GET /a": { accepts: option({ price: number }) } })).toHaveLength(1);
    },
  );

  it("refuses extra that is not JSON, or too large", () => {
    for (const extra of [
      { note: () => 1 },
      { note: 1n },
      { note: "x".repeat(2000) },
      "text",
      { note: Number.NaN },
    ]) {
      expect(problemsOf({ "GET /a": { accepts: { ...option(), extra } } })).toEqual([
        '"GET /a": accepts.extra must be JSON of at most 1024 characters',
      ]);
    }
  });

  it("names its configured resource", async () => {
    const resource = "https://api.example/weather";
    const shop = await sell({ accepts: option(), resource });
    const response = await supertest(shop.url).get("/paid?q=1");
    const header = response.get("PAYMENT-REQUIRED") ?? "";
    expect(decodePaymentRequired(header).resource?.url).toBe(resource);
    expect(response.body).toMatchObject({ accepts: [{ resource }] });
  });

  it("answers unpaid requests with its own body, from the reference's context", async () => {
    const seen: unknown[] = [];
    const shop = await sell({
      accepts: option(),
      unpaidResponseBody: ({ adapter, path, method }) => {
        seen.push(path, method, adapter.getHeader("X-Any"), adapter.getQueryParam?.("q"));
        seen.push(adapter.getMethod(), adapter.getPath(), adapter.getUrl(), adapter.getUserAgent());
        seen.push(adapter.getQueryParams?.(), adapter.getAcceptHeader());
        return { contentType: "application/json", body: { preview: "s…" } };
      },
    });
    const response = await supertest(shop.url)
      .get("/paid?q=1")
      .set({ "X-Any": "any", "User-Agent": "test", Accept: "application/json" })
      .expect(402);
    expect(response.get("Content-Type")).toBe("application/json");
    expect(response.body).toEqual({ preview: "s…" });
    const header = response.get("PAYMENT-REQUIRED") ?? "";
    expect(decodePaymentRequired(header).accepts).toHaveLength(1);
    expect(seen).toEqual([
      ...["/paid", "GET", "any", "1"],
      ...["GET", "/paid", `${shop.url}/paid?q=1`, "test"],
      ...[{ q: "1" }, "application/json"],
    ]);
  });

  it.each([
    ["a string", () => "pay first"],
    ["no type", () => ({ body: "pay first" })],
    ["a type that is invalid in a header", () => ({ contentType: "a\r\nb: c", body: "x" })],
    ["no body", () => ({ contentType: "text/html" })],
    ["a stream", () => ({ contentType: "text/plain", body: createReadStream(process.execPath) })],
    ["a promise as its body", () => ({ contentType: "text/html", body: Promise.resolve("x") })],
    ["a number outside JSON", () => ({ contentType: "text/html", body: { a: 1n } })],
  ])("is closed when its function returns %s, and the report names it", async (_case, answer) => {
    const unpaidResponseBody = () => Reflect.apply(answer, undefined, []);
    const shop = await sell({ accepts: option(), unpaidResponseBody });
    const response = await supertest(shop.url).get("/paid").expect(500);
    expect(response.body).toMatchObject({ error: "internal_error" });
    expect(shop.errors).toEqual([expect.any(SellerFunctionError)]);
    expect(String(shop.errors[0])).toContain('unpaidResponseBody of "GET /paid" returned');
  });

  it("answers unpaid requests with raw bytes, and with the default where the function returns nothing", async () => {
    const shop = await sell({
      accepts: option(),
      unpaidResponseBody: ({ adapter }) =>
        adapter.getQueryParam?.("silent") === "yes"
          ? undefined
          : { contentType: "image/png", body: Buffer.from([0, 255]) },
    });
    const { body } = await supertest(shop.url).get("/paid");
    expect(body).toEqual(Buffer.from([0, 255]));
    const offer = await supertest(shop.url).get("/paid?silent=yes");
    expect(offer.body).toMatchObject({ x402Version: 1 });
  });

  it("answers unpaid requests with its own text, rather than the options' body", async () => {
    const routes: PaymentRoutes = {
      "GET /paid": {
        accepts: option(),
        unpaidResponseBody: async () => ({ contentType: "text/plain", body: "pay first" }),
      },
      "GET /other": { accepts: option() },
    };
    const shop = await openShop({
      routes,
      serve: () => undefined,
      options: { unpaidAnswer: () => ({ contentType: "text/html", body: "<p>Pay</p>" }) },
    });
    opened.push(shop);
    await supertest(shop.url).get("/paid").expect(402, "pay first");
    await supertest(shop.url).get("/other").expect(402, "<p>Pay</p>");
  });
});
