import { Writable } from "node:stream";
import { decodeReceipt, headerName } from "@coinslot/protocol";
import compression from "compression";
import cors from "cors";
import type { Express, RequestHandler } from "express";
import { rateLimit } from "express-rate-limit";
import session from "express-session";
import helmet from "helmet";
import pino from "pino";
import { pinoHttp } from "pino-http";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import { createBuyer } from "./testing/buyer.ts";
import { type ExpressModule, expressVersions } from "./testing/express-versions.ts";
import { openShop, option, type Shop } from "./testing/shop.ts";

const opened: Shop[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((shop) => shop.close()));
});

declare module "express-session" {
  interface SessionData {
    visits: number;
  }
}

/** The usual middleware of a seller's application. */
function middleware(express: ExpressModule, lines: string[]): RequestHandler[] {
  const destination = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk));
      done();
    },
  });
  return [
    pinoHttp({ logger: pino(destination) }),
    helmet(),
    cors({ origin: "https://page.example", credentials: true }),
    compression({ threshold: 0 }),
    session({ secret: "s", resave: false, saveUninitialized: true }),
    rateLimit({ windowMs: 60_000, limit: 100 }),
    express.json(),
    express.urlencoded({ extended: true }),
    express.text(),
  ];
}

const origin = { Origin: "https://page.example" };

describe.each(expressVersions)("an application on $name with common middleware", ({ express }) => {
  async function open(place: "before" | "after") {
    const lines: string[] = [];
    const use = (app: Express) => {
      for (const each of middleware(express, lines)) app.use(each);
    };
    const shop = await openShop({
      express,
      routes: { "POST /echo": { accepts: option() } },
      ...(place === "before" ? { before: use } : {}),
      serve(app) {
        if (place === "after") use(app);
        app.post("/echo", (request, response) => {
          request.session.visits = (request.session.visits ?? 0) + 1;
          response.json({ body: request.body, visits: request.session.visits });
        });
      },
    });
    opened.push(shop);
    return { shop, lines };
  }

  it.each(["before", "after"] as const)("sells with all of it %s the gate", async (place) => {
    const { shop, lines } = await open(place);
    const init = {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: '{"a":1}',
    };
    const { headers } = await createBuyer().payFor(`${shop.url}/echo`, { init });
    const answer = await supertest(shop.url)
      .post("/echo")
      .set({ ...init.headers, ...origin, ...headers, "Accept-Encoding": "gzip" })
      .send(init.body)
      .expect(200);
    expect(answer.body).toEqual({ body: { a: 1 }, visits: 1 });
    expect(decodeReceipt(answer.get(headerName.paymentResponse) ?? "").success).toBe(true);
    expect(answer.get("Content-Encoding")).toBe("gzip");
    expect(answer.get("Set-Cookie")).toEqual([expect.stringContaining("connect.sid")]);
    expect(answer.get("Content-Security-Policy")).toBeDefined();
    expect(answer.get("Access-Control-Expose-Headers")).toContain("PAYMENT-RESPONSE");
    expect(answer.get("Cache-Control")).toBe("private");
    expect(shop.facilitator.settled).toHaveLength(1);
    expect(lines.some((line) => line.includes('"statusCode":200'))).toBe(true);
    expect(shop.errors).toEqual([]);
  });

  it("lets a page on another origin read the offer", async () => {
    const { shop } = await open("before");
    const answer = await supertest(shop.url).post("/echo").set(origin).expect(402);
    expect(answer.get("Access-Control-Allow-Origin")).toBe("https://page.example");
    expect(answer.get("Access-Control-Expose-Headers")).toBe(
      "PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, WWW-Authenticate, Payment-Receipt",
    );
    expect(answer.body).toMatchObject({ x402Version: 1 });
  });

  it.each(["before", "after"] as const)(
    "answers a preflight with its CORS middleware %s the gate",
    async (place) => {
      const { shop } = await open(place);
      const answer = await supertest(shop.url)
        .options("/echo")
        .set({ ...origin, "Access-Control-Request-Method": "POST" })
        .expect(204);
      expect(answer.get("Access-Control-Allow-Origin")).toBe("https://page.example");
    },
  );

  it("sends no CORS headers where the application sends none", async () => {
    const shop = await openShop({
      express,
      routes: { "GET /paid": { accepts: option() } },
      serve: () => undefined,
    });
    opened.push(shop);
    const answer = await supertest(shop.url).get("/paid").set(origin);
    expect(answer.get("Access-Control-Expose-Headers")).toBeUndefined();
  });

  it("adds its headers once to those that the application exposes already", async () => {
    const shop = await openShop({
      express,
      routes: { "GET /paid": { accepts: option() } },
      before: (app) => app.use(cors({ exposedHeaders: ["X-Own", "payment-response"] })),
      serve: () => undefined,
    });
    opened.push(shop);
    const answer = await supertest(shop.url).get("/paid").set(origin);
    expect(answer.get("Access-Control-Expose-Headers")).toBe(
      "X-Own, payment-response, PAYMENT-REQUIRED, X-PAYMENT-RESPONSE, WWW-Authenticate, Payment-Receipt",
    );
  });
});
