import { connect, createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { type Listening, listen } from "@coinslot/devnet";
import { decodePaymentRequired, decodeReceipt, headerName, plasma } from "@coinslot/protocol";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import { type PaymentOption, paymentMiddleware } from "./index.ts";
import { createBuyer } from "./testing/buyer.ts";
import { expressVersions } from "./testing/express-versions.ts";
import { createPaperFacilitator } from "./testing/paper-facilitator.ts";
import { openShop, option, payTo } from "./testing/shop.ts";

const opened: Listening[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((shop) => shop.close()));
});

describe.each(expressVersions)("a paid route on $name", ({ express }) => {
  async function openWeather(config: Partial<Parameters<typeof openShop>[0]> = {}) {
    let runs = 0;
    const shop = await openShop({
      express,
      routes: {
        "GET /weather": {
          accepts: [option()],
          description: "Weather data",
          mimeType: "application/json",
        },
      },
      serve(app) {
        app.get("/weather", (_request, response) => {
          runs += 1;
          response.json({ forecast: "sun" });
        });
        app.get("/about", (_request, response) => {
          response.send("free");
        });
      },
      ...config,
    });
    opened.push(shop);
    return Object.assign(shop, { runs: () => runs });
  }

  it("answers an unpaid request with an offer in both versions", async () => {
    const shop = await openWeather();
    const response = await supertest(shop.url).get("/weather?day=1").expect(402);
    expect(response.get("Cache-Control")).toBe("no-store");
    expect(response.get("Content-Type")).toMatch(/^application\/json/);
    expect(response.body).toEqual({
      x402Version: 1,
      error: "Payment required",
      accepts: [
        {
          scheme: "exact",
          network: plasma,
          maxAmountRequired: "1000",
          resource: `${shop.url}/weather?day=1`,
          description: "Weather data",
          mimeType: "application/json",
          payTo,
          maxTimeoutSeconds: 300,
          asset: "0xB8CE59FC3717ada4C02eaDF9682A9e934F625ebb",
          extra: { name: "USDT0", version: "1", decimals: 6 },
        },
      ],
    });
    const header = response.get(headerName.paymentRequired) ?? "";
    expect(decodePaymentRequired(header)).toMatchObject({
      x402Version: 2,
      resource: { url: `${shop.url}/weather?day=1`, description: "Weather data" },
      accepts: [{ requirements: { network: plasma, amount: "1000", payTo } }],
    });
    expect(shop.runs()).toBe(0);
  });

  it("leaves unlisted routes alone", async () => {
    const shop = await openWeather();
    const response = await supertest(shop.url).get("/about").expect(200);
    expect(response.text).toBe("free");
    expect(response.get("Cache-Control")).toBeUndefined();
  });

  it.each([1, 2] as const)("sells in version %i, with a receipt", async (version) => {
    const shop = await openWeather();
    const buyer = createBuyer();
    const { headers } = await buyer.payFor(`${shop.url}/weather`, { version });
    const response = await supertest(shop.url).get("/weather").set(headers).expect(200);
    expect(response.body).toEqual({ forecast: "sun" });
    expect(response.get("Cache-Control")).toBe("private");
    const [ours, other] =
      version === 1
        ? [headerName.paymentResponseV1, headerName.paymentResponse]
        : [headerName.paymentResponse, headerName.paymentResponseV1];
    expect(response.get(other)).toBeUndefined();
    expect(decodeReceipt(response.get(ours) ?? "")).toMatchObject({
      success: true,
      network: plasma,
      payer: buyer.account.address.toLowerCase(),
    });
    expect(shop.facilitator.settled).toHaveLength(1);
    expect(shop.runs()).toBe(1);
  });

  it("runs the handler for one of ten concurrent requests with the same authorization", async () => {
    const shop = await openWeather();
    const { headers } = await createBuyer().payFor(`${shop.url}/weather`);
    const responses = await Promise.all(
      Array.from({ length: 10 }, () => fetch(`${shop.url}/weather`, { headers })),
    );
    const statuses = responses.map(({ status }) => status).sort();
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status === 409 || status === 402)).toHaveLength(9);
    expect(shop.runs()).toBe(1);
    expect(shop.facilitator.settled).toHaveLength(1);
  });

  it("serves an authorization once", async () => {
    const shop = await openWeather();
    const { headers } = await createBuyer().payFor(`${shop.url}/weather`);
    await supertest(shop.url).get("/weather").set(headers).expect(200);
    const again = await supertest(shop.url).get("/weather").set(headers).expect(402);
    expect(again.body).toMatchObject({ error: "invalid_exact_evm_nonce_already_used" });
    expect(shop.runs()).toBe(1);
  });

  it("is sold once when its request passes the middleware twice", async () => {
    const facilitator = createPaperFacilitator();
    // In the router, the second key fits the rest of the path.
    const routes = {
      "GET /api/weather": { accepts: option() },
      "GET /:page": { accepts: option({ price: "$2" }) },
    };
    const gate = paymentMiddleware(routes, facilitator);
    await gate.ready();
    const app = express();
    const router = express.Router();
    router.use(gate);
    router.get("/weather", (_request, response) => void response.json({ forecast: "sun" }));
    app.use(gate);
    app.use("/api", router);
    const shop = await listen(app);
    opened.push(shop);
    const { headers } = await createBuyer().payFor(`${shop.url}/api/weather`);
    const response = await supertest(shop.url).get("/api/weather").set(headers).expect(200);
    expect(response.body).toEqual({ forecast: "sun" });
    expect(facilitator.settled).toHaveLength(1);
  });

  it.each<{ price: PaymentOption["price"]; status: number; settled: number }>([
    { price: "$5", status: 500, settled: 0 },
    { price: () => "$5", status: 500, settled: 0 },
    { price: "$0.0001", status: 200, settled: 1 },
  ])("is not sold by a full key where a relative one is dearer: $price", async (expected) => {
    const facilitator = createPaperFacilitator();
    const routes = {
      "GET /:city/:day": { accepts: option() },
      "GET /premium": { accepts: option({ price: expected.price }) },
    };
    const errors: unknown[] = [];
    const onError = (error: unknown) => void errors.push(error);
    const gate = paymentMiddleware(routes, facilitator, { onError });
    await gate.ready();
    const router = express.Router().use(gate);
    router.get("/premium", (_request, response) => void response.send("dear"));
    const shop = await listen(express().use(gate).use("/weather", router));
    opened.push(shop);
    const { headers } = await createBuyer().payFor(`${shop.url}/weather/premium`);
    await supertest(shop.url).get("/weather/premium").set(headers).expect(expected.status);
    expect(facilitator.settled).toHaveLength(expected.settled);
    expect(errors).toHaveLength(expected.status === 500 ? 1 : 0);
  });

  it("sells only itself when its handler forwards to a route with a price of its own", async () => {
    let runs = 0;
    const shop = await openWeather({
      routes: {
        "GET /weather": { accepts: option() },
        "GET /dear": { accepts: option({ price: "$5" }) },
      },
      serve(app) {
        app.get("/weather", (request, response, next) => {
          request.url = "/dear";
          Reflect.apply(Reflect.get(app, "handle"), app, [request, response, next]);
        });
        app.get("/dear", (_request, response) => {
          runs += 1;
          response.send("dear");
        });
      },
    });
    const { headers } = await createBuyer().payFor(`${shop.url}/weather`);
    await supertest(shop.url).get("/weather").set(headers).expect(500);
    expect([shop.facilitator.settled, runs]).toEqual([[], 0]);
  });

  it("is refused, without a charge, when a second gate sells it too", async () => {
    let runs = 0;
    const errors: unknown[] = [];
    const onError = (error: unknown) => errors.push(error);
    const inner = createPaperFacilitator();
    const gate = paymentMiddleware.route({ accepts: option() }, inner, { onError });
    await gate.ready();
    const shop = await openWeather({
      serve(app) {
        app.get("/weather", gate, (_request, response) => {
          runs += 1;
          response.json({ forecast: "sun" });
        });
      },
    });
    const { headers } = await createBuyer().payFor(`${shop.url}/weather`);
    await supertest(shop.url).get("/weather").set(headers).expect(500);
    expect([inner.settled, shop.facilitator.settled, runs]).toEqual([[], [], 0]);
    expect(errors.map(String)).toEqual([expect.stringContaining('"GET /weather"')]);
  });
});

it("answers 500 to a request of node:http2, which it could not bind a payment to, and says so", async () => {
  const facilitator = createPaperFacilitator();
  const errors: string[] = [];
  const gate = paymentMiddleware.route({ accepts: option() }, facilitator, {
    onError: (error) => errors.push(String(error)),
  });
  await gate.ready();
  const server = createServer((request, response) => {
    Reflect.apply(gate, undefined, [request, response, () => response.end("secret")]);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const status = await new Promise((resolve) => {
    client.request({ ":path": "/paid" }).on("response", (head) => resolve(head[":status"]));
  });
  client.destroy();
  await new Promise((resolve) => server.close(resolve));
  expect(status).toBe(500);
  expect(errors).toEqual([expect.stringContaining("a request that node:http has not made")]);
});
