import { get } from "node:http";
import { type Listening, listen } from "@coinslot/devnet";
import express from "express";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import {
  createFacilitatorClient,
  createReservationStore,
  facilitatorRouter,
  paymentMiddleware,
} from "../index.ts";
import { createBuyer } from "../testing/buyer.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { openShop, option, type Shop } from "../testing/shop.ts";

const opened: Shop[] = [];
const hostedOnes: Listening[] = [];
let time = Date.now();

afterEach(async () => {
  time = Date.now();
  await Promise.all([...opened.splice(0), ...hostedOnes.splice(0)].map((each) => each.close()));
});

/** A shop with a handler that obeys the request: waits, returns 404, or answers. */
async function open(maxReleasesPerMinute = 20) {
  let runs = 0;
  const shop = await openShop({
    routes: { "GET /:what": { accepts: option(), maxTimeoutSeconds: 600 } },
    serve(app) {
      app.get("/:what", (request, response) => {
        runs += 1;
        if (request.params.what === "wait") return;
        const { payment } = request;
        if (request.params.what === "waive" && payment?.paymentFlow === "authorization")
          payment.waive();
        response.sendStatus(request.params.what === "missing" ? 404 : 200);
      });
    },
    options: {
      now: () => time,
      reservations: createReservationStore({ maxReleasesPerMinute, now: () => time }),
    },
  });
  opened.push(shop);
  return { ...shop, runs: () => runs };
}

describe("a payer whose requests end without a payment", () => {
  it("starts no more handlers in a burst than in sequence, when it abandons every one", async () => {
    const shop = await open(5);
    const buyer = createBuyer();
    const payments = await Promise.all(
      Array.from({ length: 30 }, () => buyer.payFor(`${shop.url}/wait`)),
    );
    const requests = payments.map(({ headers }) =>
      get(`${shop.url}/wait`, { headers }).on("error", () => undefined),
    );
    await expect.poll(() => shop.runs(), { interval: 2, timeout: 20_000 }).toBe(5);
    for (const request of requests) request.destroy();
    const { headers } = await buyer.payFor(`${shop.url}/answer`);
    await supertest(shop.url).get("/answer").set(headers).expect(429);
    expect(shop.runs()).toBe(5);
  });

  it("gets the time left of its minute, and learns that nothing was charged", async () => {
    const shop = await open(2);
    const buyer = createBuyer();
    const start = Math.ceil(time / 60_000) * 60_000;
    for (const afterMs of [0, 20_000]) {
      time = start + afterMs;
      const { headers } = await buyer.payFor(`${shop.url}/missing`);
      await supertest(shop.url).get("/missing").set(headers).expect(404);
    }
    const { headers } = await buyer.payFor(`${shop.url}/answer`);
    const limited = await supertest(shop.url).get("/answer").set(headers).expect(429);
    expect(limited.get("Retry-After")).toBe("40");
    expect(limited.body).toMatchObject({
      error: "payer_limited",
      message: expect.stringContaining("Nothing was charged"),
    });
    time = start + 60_000;
    await supertest(shop.url).get("/answer").set(headers).expect(200);
  });

  it("is not blocked by 20 answers of 404 among 60 purchases", async () => {
    const shop = await open();
    const buyer = createBuyer();
    const statuses = new Map<number, number>();
    for (let count = 0; count < 84; count += 1) {
      const url = `${shop.url}/${count % 4 === 0 ? "missing" : "answer"}`;
      const { headers } = await buyer.payFor(url);
      const { status } = await supertest(url).get("").set(headers);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    expect(Object.fromEntries(statuses)).toEqual({ 200: 63, 404: 21 });
  });

  it("is not limited by runs with a waived payment", async () => {
    const shop = await open(2);
    const buyer = createBuyer();
    for (let count = 0; count < 4; count += 1) {
      const { headers } = await buyer.payFor(`${shop.url}/waive`);
      await supertest(shop.url).get("/waive").set(headers).expect(200);
    }
    expect(shop.facilitator.settled).toEqual([]);
  });

  it("waits for its own concurrent requests, and no paid one is refused", async () => {
    const shop = await open(3);
    const buyer = createBuyer();
    const url = `${shop.url}/answer`;
    const payments = await Promise.all(Array.from({ length: 25 }, () => buyer.payFor(url)));
    const answers = await Promise.all(payments.map(({ headers }) => fetch(url, { headers })));
    expect(answers.map(({ status }) => status)).toEqual(Array(25).fill(200));
  });

  it("is limited by the seller before a remote facilitator too, without a call to it", async () => {
    const paper = createPaperFacilitator();
    const hosted = await listen(express().use(facilitatorRouter(paper)));
    hostedOnes.push(hosted);
    const gate = paymentMiddleware(
      { "GET /missing": { accepts: option() } },
      createFacilitatorClient({ url: hosted.url }),
      { now: () => time },
    );
    await gate.ready();
    const shop = await listen(express().use(gate));
    hostedOnes.push(shop);
    const buyer = createBuyer();
    const statuses: number[] = [];
    for (let count = 0; count < 22; count += 1) {
      const { headers } = await buyer.payFor(`${shop.url}/missing`);
      statuses.push((await supertest(shop.url).get("/missing").set(headers)).status);
    }
    expect(statuses).toEqual([...Array(20).fill(404), 429, 429]);
    expect(paper.settled).toEqual([]);
  });

  it("is limited over all gates of a remote facilitator together, and each payment runs at one", async () => {
    const facilitator = createPaperFacilitator();
    const app = express();
    for (const path of ["/first", "/second"]) {
      const gate = paymentMiddleware.route({ accepts: option() }, facilitator, {
        now: () => time,
      });
      await gate.ready();
      app.get(path, gate, (_request, response) => void response.sendStatus(404));
    }
    let answerSlowly: () => void = () => undefined;
    const slow = paymentMiddleware.route({ accepts: option() }, facilitator, { now: () => time });
    await slow.ready();
    app.get("/slow", slow, (_request, response) => {
      answerSlowly = () => response.send("content");
      app.emit("begun");
    });
    const shop = await listen(app);
    hostedOnes.push(shop);
    const buyer = createBuyer();
    const pay = async (path: string) => (await buyer.payFor(`${shop.url}${path}`)).headers;
    const begun = new Promise((resolve) => app.once("begun", resolve));
    const headers = await pay("/slow");
    const bought = fetch(`${shop.url}/slow`, { headers });
    await begun;
    await supertest(shop.url).get("/first").set(headers).expect(409);
    answerSlowly();
    expect((await bought).status).toBe(200);
    const statuses: number[] = [];
    for (let count = 0; count < 22; count += 1) {
      const path = count % 2 === 0 ? "/first" : "/second";
      const payment = await pay(path);
      statuses.push((await supertest(shop.url).get(path).set(payment)).status);
    }
    expect(statuses).toEqual([...Array(20).fill(404), 429, 429]);
  });

  it("gets the retry time of a remote facilitator", async () => {
    let isLimited = false;
    const app = express();
    app.use((_request, response, next) => {
      if (isLimited) response.set("Retry-After", "40").sendStatus(429);
      else next();
    });
    const hosted = await listen(app.use(facilitatorRouter(createPaperFacilitator())));
    hostedOnes.push(hosted);
    const facilitator = createFacilitatorClient({ url: hosted.url });
    const gate = paymentMiddleware({ "GET /a": { accepts: option() } }, facilitator, {
      onError: () => undefined,
    });
    await gate.ready();
    const shop = await listen(express().use(gate));
    hostedOnes.push(shop);
    const { headers } = await createBuyer().payFor(`${shop.url}/a`);
    isLimited = true;
    const answer = await supertest(shop.url).get("/a").set(headers);
    expect([answer.status, answer.get("Retry-After")]).toEqual([503, "40"]);
  });
});
