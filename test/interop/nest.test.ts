import { createPayingFetch } from "@coinslot/client";
import { type PaymentRoutes, paymentMiddleware } from "@coinslot/express";
import type { Application } from "express";
import supertest from "supertest";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createNestApp as createNest10App } from "../support/nest-10/app.ts";
import { createNestApp as createNest12App } from "../support/nest-12/app.ts";
import { content } from "../support/nest-shop.ts";
import { openWeatherShop, type WeatherShop, weatherPrice } from "../support/seller.ts";

// Express 5 is installed beside the middleware. NestJS 10 brings Express 4, and NestJS 12 brings
// Express 5.
const frameworks = [
  {
    name: "NestJS 10",
    createApp: createNest10App,
    wildcard: "GET /files/*",
    other: "GET /files/*rest",
  },
  { name: "NestJS 12", createApp: createNest12App, wildcard: "GET /files/*rest" },
] as const;

let shop: WeatherShop;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  shop = await openWeatherShop();
});

afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

afterAll(async () => {
  await shop?.close();
});

describe.each(frameworks)("an application of $name", ({ createApp, wildcard, ...rest }) => {
  async function open(keys: readonly `GET /${string}`[], isPassed: boolean, files?: string) {
    const nest = await createApp(files);
    const errors: unknown[] = [];
    const accepts = weatherPrice(shop.devnet);
    const routes: PaymentRoutes = Object.fromEntries(keys.map((key) => [key, { accepts }]));
    const app: Application = nest.getHttpAdapter().getInstance();
    const gate = paymentMiddleware(routes, shop.facilitator, {
      ...(isPassed ? { app } : {}),
      onError: (error) => errors.push(error),
    });
    nest.use(gate);
    await gate.ready();
    await nest.listen(0, "127.0.0.1");
    closing.push(() => nest.close());
    return { url: await nest.getUrl(), errors };
  }

  function pay(url: string): Promise<Response> {
    const { buyer } = shop.devnet.accounts;
    const rpcUrls = { [shop.devnet.network]: shop.devnet.rpcUrl };
    return createPayingFetch({ account: buyer, rpcUrls })(url);
  }

  it("sells a wildcard and a parameter when the application is passed", async () => {
    const { url, errors } = await open([wildcard, "GET /reports/:id"], true);
    for (const path of ["/files/report.pdf", "/FILES/a/b", "/reports/7", "/reports/7/"]) {
      const unpaid = await supertest(url).get(path).expect(402);
      expect(unpaid.text).not.toContain(content);
    }
    for (const path of ["/files/report.pdf", "/reports/7"]) {
      const paid = await pay(`${url}${path}`);
      expect(paid.status).toBe(200);
      expect(await paid.text()).toContain(content);
    }
    await supertest(url).get("/free").expect(200, "free");
    expect(errors).toEqual([]);
  });

  it("sells keys that both Express versions read alike, without being passed", async () => {
    const { url, errors } = await open(["GET /reports/:id"], false);
    await supertest(url).get("/reports/7").expect(402);
    expect((await pay(`${url}/reports/7`)).status).toBe(200);
    expect(errors).toEqual([]);
  });

  if (wildcard === "GET /files/*rest") {
    it("closes a folder whose wildcard NestJS lets be empty, and sells it by such a key", async () => {
      const closed = await open([wildcard], true, "files/*");
      const { text } = await supertest(closed.url).get("/files/").expect(503);
      expect(text).not.toContain(content);
      await supertest(closed.url).get("/files/report.pdf").expect(402);
      expect(closed.errors).toHaveLength(1);
      const sold = await open(["GET /files/{*rest}"], true, "files/*");
      await supertest(sold.url).get("/files/").expect(402);
      expect(sold.errors).toEqual([]);
    });
  }

  if ("other" in rest) {
    const { other } = rest;

    it("refuses its own wildcard at start when the application is not passed", async () => {
      await expect(open([wildcard], false)).rejects.toThrow(/options\.app/);
    });

    it("closes a wildcard of the other Express, and reports it", async () => {
      const { url, errors } = await open([other, "GET /reports/:id"], false);
      const { text } = await supertest(url).get("/files/report.pdf").expect(503);
      expect(text).not.toContain(content);
      await supertest(url).get("/reports/7").expect(402);
      await supertest(url).get("/free").expect(200);
      expect(errors).toHaveLength(1);
    });
  }
});
