import { get } from "node:http";
import { headerName } from "@coinslot/protocol";
import type { RequestHandler } from "express";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import type { PaymentMiddlewareOptions } from "../index.ts";
import { createBuyer } from "../testing/buyer.ts";
import { openShop, option, type Shop } from "../testing/shop.ts";

const opened: Shop[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((shop) => shop.close()));
});

/** A shop that counts the runs of its handlers. */
async function open(
  handler: RequestHandler,
  options: PaymentMiddlewareOptions = {},
  onDisconnect?: "release" | "settle",
) {
  let runs = 0;
  let left = 0;
  const routes = {
    "GET /answer": { accepts: option(), ...(onDisconnect && { onDisconnect }) },
    "GET /stream": { accepts: option(), paymentFlow: "upfront" },
  } as const;
  const shop = await openShop({
    routes,
    serve(app) {
      app.get(["/answer", "/stream"], (request, response, next) => {
        runs += 1;
        response.once("close", () => {
          left += 1;
        });
        handler(request, response, next);
      });
    },
    options,
  });
  opened.push(shop);
  return { ...shop, runs: () => runs, left: () => left };
}

/**
 * Sends a payment, and closes the connection in this run of the handler; returns once the seller
 * has noticed.
 */
async function payAndLeave(
  shop: { runs: () => number; left: () => number },
  options: { url: string; headers: Record<string, string>; run: number },
): Promise<void> {
  const { url, headers, run } = options;
  const request = get(url, { headers });
  request.on("error", () => undefined);
  await expect.poll(() => shop.runs(), { interval: 2, timeout: 20_000 }).toBe(run);
  const left = shop.left();
  request.destroy();
  await expect.poll(() => shop.left(), { interval: 2, timeout: 20_000 }).toBe(left + 1);
}

/** Repeats the payment until the previous request has released it. */
async function payAgain(url: string, headers: Record<string, string>): Promise<supertest.Response> {
  for (;;) {
    const answer = await supertest(url).get("").set(headers);
    if (answer.status !== 409) return answer;
  }
}

describe("a settled payment whose buyer always leaves early", () => {
  it("runs an upfront handler twice at most", async () => {
    const shop = await open((_request, response) => void response.write("half"));
    const url = `${shop.url}/stream`;
    const { headers } = await createBuyer().payFor(url);
    await payAndLeave(shop, { url, headers, run: 1 });
    await expect
      .poll(
        async () => {
          const leaving = new AbortController();
          const answer = await fetch(url, { headers, signal: leaving.signal });
          leaving.abort();
          return answer.status;
        },
        { interval: 5, timeout: 20_000 },
      )
      .toBe(402);
    expect(shop.runs()).toBe(2);
    expect(shop.facilitator.settled).toHaveLength(1);
    const usedUp = await supertest(url).get("").set(headers);
    expect(usedUp.get(headerName.paymentResponse)).toBeDefined();
    expect(usedUp.body).toMatchObject({
      error: "payment_used_up",
      charged: true,
      transaction: expect.stringMatching(/^0x/),
    });
  });

  it("finds its first run's answer in memory: nothing runs again, and it is delivered once", async () => {
    const answers: (() => void)[] = [];
    const shop = await open(
      (_request, response) => void answers.push(() => response.send(`run ${answers.length}`)),
      {},
      "settle",
    );
    const url = `${shop.url}/answer`;
    const { headers } = await createBuyer().payFor(url);
    await payAndLeave(shop, { url, headers, run: 1 });
    answers[0]?.();
    const delivered = await payAgain(url, headers);
    expect([delivered.status, delivered.text]).toEqual([200, "run 1"]);
    expect(delivered.get(headerName.paymentResponse)).toBeDefined();
    await supertest(url).get("").set(headers).expect(402);
    expect(shop.runs()).toBe(1);
  });

  it("finds its answer for 60 seconds, and then its handler runs once more", async () => {
    let now = Date.now();
    const shop = await open((_request, response) => void response.send(`run ${shop.runs()}`), {
      now: () => now,
    });
    const url = `${shop.url}/answer`;
    const { headers } = await createBuyer().payFor(url);
    shop.facilitator.onSettle = async (settle) => {
      settle();
      throw new Error("The connection was lost");
    };
    await supertest(url).get("").set(headers).expect(503);
    shop.facilitator.onSettle = undefined;
    now += 61_000;
    await supertest(url).get("").set(headers).expect(200, "run 2");
  });

  it("withholds its answer from another request, and from one without the buyer's key", async () => {
    const shop = await open((_request, response) => void response.send(`run ${shop.runs()}`));
    const url = `${shop.url}/answer`;
    const { headers } = await createBuyer().payFor(url);
    const withKey = { ...headers, [headerName.idempotencyKey]: "0123456789abcdef" };
    shop.facilitator.onSettle = async (settle) => {
      settle();
      throw new Error("The connection was lost");
    };
    await supertest(url).get("").set(withKey).expect(503);
    shop.facilitator.onSettle = undefined;
    await supertest(url).get("").set(headers).expect(409);
    await supertest(url).get("?other").set(withKey).expect(409);
    await supertest(url).get("").set(withKey).expect(200, "run 1");
  });

  it("a settled payment whose buyer always leaves early without a key finds its answer under any, also after a stranger has asked with one", async () => {
    const shop = await open((_request, response) => void response.send(`run ${shop.runs()}`));
    const url = `${shop.url}/answer`;
    const { headers } = await createBuyer().payFor(url);
    const keyed = (key: string) => ({ ...headers, [headerName.idempotencyKey]: key });
    shop.facilitator.onSettle = async (settle) => {
      settle();
      throw new Error("The connection was lost");
    };
    await supertest(url).get("").set(headers).expect(503);
    await supertest(url).get("").set(keyed("a-key-of-a-stranger")).expect(503);
    shop.facilitator.onSettle = undefined;
    await supertest(url).get("").set(keyed("a-new-key-of-the-buyer")).expect(200, "run 1");
    await supertest(url).get("").set(headers).expect(402);
  });
});

it("an unpaid payment runs its handler twice: then another payment is required", async () => {
  const shop = await open((_request, response) => void response.status(500).end());
  const url = `${shop.url}/answer`;
  const { headers } = await createBuyer().payFor(url);
  const statuses: number[] = [];
  for (let time = 0; time < 3; time += 1) {
    statuses.push((await supertest(url).get("").set(headers)).status);
  }
  expect(statuses).toEqual([500, 500, 402]);
  const refused = await supertest(url).get("").set(headers);
  expect(refused.body).toMatchObject({ error: "payment_used_up" });
  expect(refused.get(headerName.paymentRequired)).toBeDefined();
  expect(shop.runs()).toBe(2);
});

it("a paid run continues when its buyer leaves, at any onDisconnect, until its time limit", async () => {
  const answers: (() => void)[] = [];
  let isLost = true;
  const shop = await open(
    (_request, response) => void answers.push(() => response.send(`run ${answers.length}`)),
    { maxKeptAnswerBytes: 0 },
    "release",
  );
  const url = `${shop.url}/answer`;
  const { headers } = await createBuyer().payFor(url);
  shop.facilitator.onSettle = async (settle) => {
    const settled = settle();
    if (isLost) throw new Error("The connection was lost");
    return settled;
  };
  const first = fetch(url, { headers });
  await expect.poll(() => answers.length, { interval: 2, timeout: 20_000 }).toBe(1);
  answers[0]?.();
  expect((await first).status).toBe(503);
  isLost = false;
  await payAndLeave(shop, { url, headers, run: 2 });
  // Held until the run has ended.
  await supertest(url).get("").set(headers).expect(409);
  answers[1]?.();
  expect((await payAgain(url, headers)).status).toBe(402);
  expect(shop.runs()).toBe(2);
});
