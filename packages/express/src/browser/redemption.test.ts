import { headerName } from "@coinslot/protocol";
import type { Request, Response } from "express";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import type { PaymentMiddlewareOptions } from "../index.ts";
import { createBuyer } from "../testing/buyer.ts";
import { openShop, option, type Shop } from "../testing/shop.ts";

const opened: Shop[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((shop) => shop.close()));
});

const key = "a key of a browser's page";
const accept = "text/html,*/*;q=0.8";
const navigation = {
  Accept: accept,
  "Sec-Fetch-Mode": "navigate",
  "Sec-Fetch-Site": "same-origin",
};

async function open(
  options: PaymentMiddlewareOptions = {},
  answer = (_request: Request, response: Response) =>
    void response.cookie("own", "1").type("html").send("<h1>sold</h1>"),
) {
  let runs = 0;
  const shop = await openShop({
    routes: {
      "GET /paid": { accepts: option() },
      "GET /other": { accepts: option() },
      "POST /form": { accepts: option() },
    },
    serve: (app) =>
      app.use((request, response) => {
        runs += 1;
        answer(request, response);
      }),
    options,
  });
  opened.push(shop);
  return { ...shop, runs: () => runs };
}

type Opened = Awaited<ReturnType<typeof open>>;

/** Pays as the page does. */
async function pay(shop: Opened, { path = "/paid?a=1", body = "", pagePath = "" } = {}) {
  const method = body === "" ? "GET" : "POST";
  const { headers } = await createBuyer().payFor(`${shop.url}${path}`, {
    init: { method, ...(body === "" ? {} : { body, headers: form }) },
  });
  const request = body === "" ? supertest(shop.url).get(path) : supertest(shop.url).post(path);
  const answer = await request
    .set({ ...headers, ...(body === "" ? {} : form), Accept: accept })
    .set({ "Coinslot-Redeem": "1", "Idempotency-Key": key })
    .set(pagePath === "" ? {} : { "Coinslot-Redeem-Path": pagePath })
    .send(body === "" ? undefined : body);
  const cookies: string[] = [answer.get("Set-Cookie") ?? []].flat();
  const cookie = cookies.find((each) => each.startsWith("coinslot_answer="));
  return { answer, cookie, pair: cookie?.split(";", 1)[0] ?? "" };
}

const form = { "Content-Type": "application/x-www-form-urlencoded" };

describe("the cookie of a paid page", () => {
  it("opens the kept answer by one navigation, and runs and pays nothing again", async () => {
    const shop = await open();
    const { answer, cookie, pair } = await pay(shop);
    expect(answer.status).toBe(200);
    expect(answer.get("Coinslot-Redeem")).toBe("60");
    expect(cookie).toMatch(
      /^coinslot_answer=[\w-]+; Path=\/paid; Max-Age=60; HttpOnly; SameSite=Strict$/,
    );
    const opened = await supertest(shop.url)
      .get("/paid?a=1")
      .set({ ...navigation, Cookie: `a=b; ${pair}` })
      .expect(200, "<h1>sold</h1>");
    expect(opened.get(headerName.paymentResponse)).toBe(answer.get(headerName.paymentResponse));
    expect(opened.get("Set-Cookie")).toEqual([
      "own=1; Path=/",
      "coinslot_answer=; Path=/paid; Max-Age=0; HttpOnly; SameSite=Strict",
    ]);
    const again = await supertest(shop.url)
      .get("/paid?a=1")
      .set({ ...navigation, Cookie: pair })
      .expect(402);
    expect(again.text).toContain("Nothing has been charged");
    expect([shop.runs(), shop.facilitator.settled.length]).toEqual([1, 1]);
  });

  it("has the path of its page, behind a proxy that cuts a prefix off", async () => {
    const shop = await open();
    const { cookie, pair } = await pay(shop, { pagePath: "/shop/paid" });
    expect(cookie).toMatch(/; Path=\/shop\/paid; /);
    const opened = await supertest(shop.url)
      .get("/paid?a=1")
      .set({ ...navigation, Cookie: pair })
      .expect(200, "<h1>sold</h1>");
    expect(opened.get("Set-Cookie")).toContain(
      "coinslot_answer=; Path=/shop/paid; Max-Age=0; HttpOnly; SameSite=Strict",
    );
  });

  it.each(["/other", "/paid/", "/shop;a/paid", "shop/paid", "/shop paid/paid", "/unpaid"])(
    "keeps to the request's own path where the page says %s",
    async (pagePath) => {
      const { cookie } = await pay(await open(), { pagePath });
      expect(cookie).toMatch(/; Path=\/paid; /);
    },
  );

  it("opens nothing for HEAD, and is not used up by it", async () => {
    const shop = await open();
    const { pair } = await pay(shop);
    const head = { ...navigation, Cookie: pair };
    await supertest(shop.url).head("/paid?a=1").set(head).expect(402);
    await supertest(shop.url).get("/paid?a=1").set(head).expect(200, "<h1>sold</h1>");
    expect(shop.runs()).toBe(1);
  });

  it("opens the whole answer also for a range of it, as an answer that is not kept in parts", async () => {
    const shop = await open();
    const { pair } = await pay(shop);
    const opened = await supertest(shop.url)
      .get("/paid?a=1")
      .set({ ...navigation, Cookie: pair, Range: "bytes=0-3" })
      .expect(200, "<h1>sold</h1>");
    expect(opened.get("Content-Range")).toBeUndefined();
  });

  it("holds neither payment nor key in the clear", async () => {
    const shop = await open();
    const { pair, answer } = await pay(shop);
    const text = Buffer.from(pair.slice("coinslot_answer=".length), "base64url").toString("latin1");
    expect(text).not.toContain(key);
    expect(text).not.toContain("signature");
    expect(answer.status).toBe(200);
  });

  it.each([
    ["another URL", "/paid?a=2", ""],
    ["another route", "/other", ""],
  ])("opens nothing for %s", async (_name, path) => {
    const shop = await open();
    const { pair } = await pay(shop);
    await supertest(shop.url)
      .get(path)
      .set({ ...navigation, Cookie: pair })
      .expect(402);
    expect(shop.runs()).toBe(1);
    await supertest(shop.url)
      .get("/paid?a=1")
      .set({ ...navigation, Cookie: pair })
      .expect(200);
  });

  it("opens the answer to a form for the same form alone", async () => {
    const shop = await open();
    const send = async (body: string, pair: string) =>
      (
        await supertest(shop.url)
          .post("/form")
          .set({ ...navigation, ...form, Cookie: pair })
          .send(body)
      ).status;
    const first = await pay(shop, { path: "/form", body: "a=1" });
    expect(await send("a=1", first.pair)).toBe(200);
    const second = await pay(shop, { path: "/form", body: "a=1" });
    expect(await send("a=2", second.pair)).toBe(402);
    expect([shop.runs(), shop.facilitator.settled.length]).toEqual([2, 2]);
  });

  it("opens nothing after a minute", async () => {
    let now = Date.now();
    const shop = await open({ now: () => now });
    const { pair } = await pay(shop);
    now += 60_000;
    await supertest(shop.url)
      .get("/paid?a=1")
      .set({ ...navigation, Cookie: pair })
      .expect(402);
  });

  it.each([
    ["cut", (value: string) => value.slice(0, -4)],
    ["changed", (value: string) => `${value.slice(0, -4)}AAAA`],
    ["junk", () => "x".repeat(400)],
    ["empty", () => ""],
  ])("opens nothing when it is %s", async (_name, change) => {
    const shop = await open();
    const { pair } = await pay(shop);
    const value = change(pair.slice("coinslot_answer=".length));
    await supertest(shop.url)
      .get("/paid?a=1")
      .set({ ...navigation, Cookie: `coinslot_answer=${value}` })
      .expect(402);
    expect([shop.runs(), shop.facilitator.settled.length]).toEqual([1, 1]);
  });

  it("opens nothing at another seller", async () => {
    const [shop, other] = [await open(), await open()];
    const { pair } = await pay(shop);
    await supertest(other.url)
      .get("/paid?a=1")
      .set({ ...navigation, Cookie: pair })
      .expect(402);
    expect(other.runs()).toBe(0);
  });

  it("opens nothing a second time in another spelling of the same bytes", async () => {
    const shop = await open();
    const { pair } = await pay(shop);
    await supertest(shop.url)
      .get("/paid?a=1")
      .set({ ...navigation, Cookie: pair })
      .expect(200);
    const bytes = (text: string) => Buffer.from(text.replace(/^.*=/, ""), "base64url");
    const signs = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const spellings = [...signs].flatMap((sign) => [pair.slice(0, -1) + sign, pair + sign]);
    const same = spellings.filter((each) => each !== pair && bytes(each).equals(bytes(pair)));
    expect(same.length).toBeGreaterThan(0);
    for (const Cookie of same) {
      await supertest(shop.url)
        .get("/paid?a=1")
        .set({ ...navigation, Cookie })
        .expect(402);
    }
  });

  it("is found beside others of its name", async () => {
    const shop = await open();
    const { pair } = await pay(shop);
    const Cookie = `coinslot_answer=${"x".repeat(300)}; ${pair}`;
    await supertest(shop.url)
      .get("/paid?a=1")
      .set({ ...navigation, Cookie })
      .expect(200);
  });

  it("opens a redirect, which no script can read", async () => {
    const shop = await open({}, (_request, response) => void response.redirect(303, "/done"));
    const { answer, pair } = await pay(shop);
    expect([answer.status, answer.get("Coinslot-Redeem")]).toEqual([303, "60"]);
    const opened = await supertest(shop.url)
      .get("/paid?a=1")
      .set({ ...navigation, Cookie: pair });
    expect([opened.status, opened.get("Location")]).toEqual([303, "/done"]);
  });

  it("is not set for an answer that is no page, or is too large to be kept", async () => {
    const json = await open({}, (_request, response) => void response.json({ a: 1 }));
    expect((await pay(json)).cookie).toBeUndefined();
    const large = await open({ maxKeptAnswerBytes: 4 });
    const { answer, cookie } = await pay(large);
    expect([answer.status, answer.get("Coinslot-Redeem"), cookie]).toEqual([
      200,
      undefined,
      undefined,
    ]);
  });

  it("is not set for a client that does not ask", async () => {
    const shop = await open();
    const { headers } = await createBuyer().payFor(`${shop.url}/paid`);
    const answer = await supertest(shop.url)
      .get("/paid")
      .set({ ...headers, "Idempotency-Key": key })
      .expect(200);
    expect(answer.get("Set-Cookie")).toEqual(["own=1; Path=/"]);
  });
});
