import { request as httpRequest, type IncomingMessage } from "node:http";
import type { Listening } from "@coinslot/devnet";
import { plasmaUsdt0 } from "@coinslot/protocol";
import express, { type Express, type Request } from "express";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import type { PaymentMiddlewareOptions, PaymentRoutes } from "../index.ts";
import { createBuyer, fetchOffer } from "../testing/buyer.ts";
import {
  channelOfferOf,
  channelOption,
  createChannelBuyer,
  openChannelShop,
} from "../testing/channel-shop.ts";
import { openShop, option, payTo } from "../testing/shop.ts";

const opened: Listening[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

const { address: asset, name, version, decimals } = plasmaUsdt0;
const priceOf = (isDear: boolean) => ({
  amount: isDear ? "1000000" : "1000",
  asset,
  extra: { name, version, decimals },
});
const dearContent = "the dear content";

function keepBytes(request: IncomingMessage, _response: unknown, bytes: Buffer): void {
  Reflect.set(request, "rawBody", bytes);
}

/** Puts the plan that a header names into the path. */
function addPlan(app: Express): void {
  app.use((request, _response, next) => {
    request.url = `/${request.get("X-Plan") ?? "basic"}${request.url}`;
    next();
  });
}

describe("a payment at the price of a function that was settled and not delivered", () => {
  const isDear = ({ hostname, path }: Request) => /^(?:dear|\/gold)\b/.test(`${hostname}${path}`);
  const isGold = ({ path }: Request) => path.startsWith("/gold");

  async function pay(scene: {
    routes: PaymentRoutes;
    before?: (app: Express) => void;
    options?: PaymentMiddlewareOptions;
  }) {
    const shop = await openShop({
      ...scene,
      serve(app) {
        app.use((request, response) => {
          const isOfDear = isDear(request) || isGold(request);
          if (isOfDear) response.send(dearContent);
          else response.status(500).send("broken");
        });
      },
    });
    opened.push(shop);
    const offer = await fetchOffer(`${shop.url}/report`, 2);
    const [first] = offer.accepts;
    if (first === undefined) throw new Error("Nothing is offered");
    const { headers } = await createBuyer().sign(first);
    const ask = (more: Record<string, string>) =>
      supertest(shop.url)
        .get("/report")
        .set({ ...headers, ...more });
    // The money moves, and the handler fails.
    await ask({}).expect(500);
    expect(shop.facilitator.settled).toHaveLength(1);
    return { ask, shop };
  }

  const byHost: PaymentRoutes = {
    "GET /report": {
      paymentFlow: "upfront",
      accepts: option({
        price: (request) => priceOf(isDear(request)),
        payTo: (request) => (isDear(request) ? payTo : `0x${"a7".repeat(20)}`),
      }),
    },
  };

  it("buys nothing at another host", async () => {
    const { ask } = await pay({ routes: byHost });
    const { text } = await ask({ Host: "dear.test" }).expect(409);
    expect(text).not.toContain(dearContent);
    await ask({}).expect(500);
  });

  it("buys nothing at a host that a client of a trusted proxy names", async () => {
    const { ask } = await pay({
      routes: byHost,
      before: (app) => app.set("trust proxy", true),
    });
    for (const host of ["dear.test", "dear.test:1:1"])
      await ask({ "X-Forwarded-Host": host }).expect(409);
  });

  it("is resumed at any host where a public URL stands for all", async () => {
    const { ask } = await pay({ routes: byHost, options: { publicUrl: "https://shop.test" } });
    await ask({ Host: "10.0.0.2:4021" }).expect(500);
  });

  it.each([
    ["two routes", ["GET /basic/report", "GET /gold/report"]],
    ["one route", ["GET /:plan/report"]],
  ] as const)("buys nothing under a path that a header rewrites: %s", async (_case, keys) => {
    const terms = {
      paymentFlow: "upfront" as const,
      accepts: option({ price: (request) => priceOf(isGold(request)) }),
    };
    const routes: PaymentRoutes = Object.fromEntries(keys.map((key) => [key, terms]));
    const { ask } = await pay({ routes, before: addPlan });
    await ask({ "X-Plan": "gold" }).expect(409);
  });

  it("buys nothing under a query that a header rewrites", async () => {
    const { ask } = await pay({
      routes: {
        "GET /report": {
          paymentFlow: "upfront",
          accepts: option({ price: ({ query }) => priceOf(query.plan === "gold") }),
        },
      },
      before(app) {
        app.use((request, _response, next) => {
          request.url += `?plan=${request.get("X-Plan") ?? "basic"}`;
          next();
        });
      },
    });
    await ask({ "X-Plan": "gold" }).expect(409);
  });
});

it.each([
  ["which no parser reads", "text/plain", express.json()],
  ["", "", express.json()],
  ["with its bytes", "application/octet-stream", express.json({ verify: keepBytes })],
])(
  "a payment for a body under another type %s is none for a parsed body",
  async (_case, type, parser) => {
    const isGold = ({ body }: Request) => body?.plan === "gold";
    const shop = await openShop({
      routes: {
        "POST /report": {
          paymentFlow: "upfront",
          accepts: option({ price: (request) => priceOf(isGold(request)) }),
        },
      },
      before: (app) => app.use(parser),
      serve(app) {
        app.post("/report", (request, response) => {
          if (isGold(request)) response.send(dearContent);
          else response.status(500).send("no plan");
        });
      },
    });
    opened.push(shop);
    const url = `${shop.url}/report`;
    const body = new Blob(['{"plan":"gold"}'], { type });
    const offer = await fetchOffer(url, 2, { method: "POST", body });
    const [first] = offer.accepts;
    if (first === undefined) throw new Error("Nothing is offered");
    const { headers } = await createBuyer().sign(first);
    expect((await fetch(url, { method: "POST", headers, body })).status).toBe(500);
    const json = new Blob([body], { type: "application/json" });
    const answer = await fetch(url, { method: "POST", headers, body: json });
    expect(await answer.text()).not.toContain(dearContent);
    expect(answer.status).toBe(409);
  },
);

it("a lost answer of a channel is no answer of a dearer route with the same URL", async () => {
  let begin = (): void => undefined;
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const shop = await openChannelShop({
    before: addPlan,
    routes: {
      "GET /basic/report": { accepts: channelOption(), onDisconnect: "settle" },
      "GET /gold/report": { accepts: channelOption({ price: priceOf(true) }) },
    },
    options: { maxKeptAnswerBytes: 1 },
    serve(app) {
      app.get("/basic/report", (request, response) => {
        request.socket.once("close", () => response.send("the cheap content"));
        begin();
      });
      app.get("/gold/report", (_request, response) => void response.send(dearContent));
    },
  });
  const url = `${shop.url}/report`;
  const gold = { "X-Plan": "gold" };
  const buyer = createChannelBuyer();
  const cheap = channelOfferOf(await fetch(url));
  const dear = channelOfferOf(await fetch(url, { headers: gold }));
  const lost = httpRequest(url, { headers: await buyer.pay(cheap, 1_000n) });
  lost.on("error", () => undefined);
  lost.end();
  await begun;
  lost.destroy();
  // It waits for the channel, which the first request has until its answer is lost.
  const answer = await fetch(url, { headers: { ...(await buyer.pay(dear, 1_000n)), ...gold } });
  expect(await answer.text()).not.toContain(dearContent);
  expect(answer.status).toBe(402);
  expect(await shop.chargedOf(buyer.idOf(cheap))).toBe(1_000n);
});
