import { get } from "node:http";
import { runInNewContext } from "node:vm";
import { decodeReceipt, headerName } from "@coinslot/protocol";
import type { Express, Request, RequestHandler } from "express";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import { createBuyer, fetchOffer } from "./testing/buyer.ts";
import { expressVersions } from "./testing/express-versions.ts";
import { neverClose, openShop, option, type Shop } from "./testing/shop.ts";
import { waysToAnswer } from "./testing/ways-to-answer.ts";

const opened: Shop[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((shop) => shop.close()));
});

describe.each(expressVersions)("an upfront route on $name", ({ express }) => {
  async function open(handler: RequestHandler, before?: (app: Express) => void): Promise<Shop> {
    const shop = await openShop({
      express,
      before,
      routes: { "GET /stream": { accepts: option(), paymentFlow: "upfront" } },
      serve(app) {
        app.set("env", "test");
        app.get("/stream", handler);
      },
    });
    opened.push(shop);
    return shop;
  }

  it("is marked in its offer", async () => {
    const shop = await open((_request, response) => void response.send("x"));
    const offer = await fetchOffer(`${shop.url}/stream`, 2);
    expect(offer.accepts[0]?.requirements.extra).toMatchObject({ paymentFlow: "upfront" });
  });

  it("is paid before the handler runs, and the handler reads the settlement", async () => {
    let seen: Request["payment"];
    let settledBefore = 0;
    const shop: Shop = await open((request, response) => {
      seen = request.payment;
      settledBefore = shop.facilitator.settled.length;
      response.send("x");
    });
    const buyer = createBuyer();
    const { headers } = await buyer.payFor(`${shop.url}/stream`);
    await supertest(shop.url).get("/stream").set(headers).expect(200);
    expect(settledBefore).toBe(1);
    expect(seen).toMatchObject({
      paymentFlow: "upfront",
      payer: buyer.account.address.toLowerCase(),
      amount: "1000",
      settlement: { success: true },
    });
  });

  it("sends events as they are written, with the receipt in the headers", async () => {
    let writeNext: () => void = () => undefined;
    const shop = await open((_request, response) => {
      response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-cache" });
      response.write("data: 1\n\n");
      writeNext = () => {
        response.write("data: 2\n\n");
        writeNext = () => response.end();
      };
    });
    const { headers } = await createBuyer().payFor(`${shop.url}/stream`);
    const answer = await fetch(`${shop.url}/stream`, { headers });
    expect(decodeReceipt(answer.headers.get(headerName.paymentResponse) ?? "").success).toBe(true);
    expect(answer.headers.get("Cache-Control")).toBe("private, no-cache");
    const reader = answer.body?.getReader();
    const events: string[] = [];
    for (let done = false; !done; ) {
      const chunk = await reader?.read();
      done = chunk?.done ?? true;
      if (chunk?.value) events.push(Buffer.from(chunk.value).toString());
      writeNext();
    }
    expect(events).toEqual(["data: 1\n\n", "data: 2\n\n"]);
    await supertest(shop.url).get("/stream").set(headers).expect(402);
  });

  it("buffers nothing of a large answer", async () => {
    const megabyte = Buffer.alloc(2 ** 20, "x");
    const shop = await open(async (_request, response) => {
      for (let sent = 0; sent < 32; sent += 1) {
        if (!response.write(megabyte)) {
          await new Promise((resolve) => response.once("drain", resolve));
        }
      }
      response.end();
    });
    const { headers } = await createBuyer().payFor(`${shop.url}/stream`);
    const answer = await fetch(`${shop.url}/stream`, { headers });
    expect((await answer.arrayBuffer()).byteLength).toBe(32 * 2 ** 20);
  });

  it.each(waysToAnswer)(
    "has a receipt, is private and delivered once with %s",
    async (_case, handler, own = {}) => {
      const shop = await open(handler);
      const { headers } = await createBuyer().payFor(`${shop.url}/stream`);
      const answer = await fetch(`${shop.url}/stream`, {
        headers: { ...own, ...headers },
        redirect: "manual",
      });
      expect(decodeReceipt(answer.headers.get(headerName.paymentResponse) ?? "").success).toBe(
        true,
      );
      expect(answer.headers.get("Cache-Control")).toMatch(/^private/);
      await answer.arrayBuffer();
      await supertest(shop.url).get("/stream").set(own).set(headers).expect(402);
    },
  );

  it("is delivered once by HEAD, with the length of the body that it lacks", async () => {
    const shop = await open((_request, response) => void response.json({ forecast: "sun" }));
    const { headers } = await createBuyer().payFor(`${shop.url}/stream`, {
      init: { method: "HEAD" },
    });
    const answer = await supertest(shop.url).head("/stream").set(headers).expect(200);
    expect(answer.get("Content-Length")).toBe("18");
    await supertest(shop.url).head("/stream").set(headers).expect(402);
  });

  it("is paid when its handler fails, and the same payment runs it again", async () => {
    let runs = 0;
    const shop = await open((_request, response) => {
      runs += 1;
      if (runs === 1) throw new Error("broken");
      response.send(`run ${runs}`);
    });
    const { headers } = await createBuyer().payFor(`${shop.url}/stream`);
    const failed = await supertest(shop.url).get("/stream").set(headers).expect(500);
    expect(decodeReceipt(failed.get(headerName.paymentResponse) ?? "").success).toBe(true);
    await supertest(shop.url).get("/stream").set(headers).expect(200, "run 2");
    await supertest(shop.url).get("/stream").set(headers).expect(402);
    expect(shop.facilitator.settled).toHaveLength(1);
  });

  it.each<[string, RequestHandler]>([
    ["destroyed", (_request, response) => void response.destroy()],
    [
      "threw in the middle of",
      () => {
        throw new Error("broken");
      },
    ],
    ["handed on an error of", (_request, _response, next) => next(new Error("broken"))],
  ])(
    "runs again with the same payment after its handler %s a response that never closes",
    async (_case, fail) => {
      let runs = 0;
      const shop = await open(
        (request, response, next) => {
          runs += 1;
          if (runs > 1) return void response.send(`run ${runs}`);
          response.write("half");
          return fail(request, response, next);
        },
        (app) => app.use(neverClose),
      );
      const { headers } = await createBuyer().payFor(`${shop.url}/stream`);
      const lost = new AbortController();
      const { body } = await fetch(`${shop.url}/stream`, { headers, signal: lost.signal });
      await supertest(shop.url).get("/stream").set(headers).expect(200, "run 2");
      expect(shop.facilitator.settled).toHaveLength(1);
      lost.abort();
      await body?.cancel().catch(() => undefined);
    },
  );

  it("runs again with the same payment after its handler ended an answer below its length", async () => {
    let runs = 0;
    const shop = await open((_request, response) => {
      runs += 1;
      response.set("Content-Length", "10");
      response.write("a half");
      response.end(runs === 1 ? "" : "done");
    });
    const { headers } = await createBuyer().payFor(`${shop.url}/stream`);
    const lost = new AbortController();
    const { body } = await fetch(`${shop.url}/stream`, { headers, signal: lost.signal });
    await supertest(shop.url).get("/stream").set(headers).expect(200, "a halfdone");
    await supertest(shop.url).get("/stream").set(headers).expect(402);
    expect(shop.facilitator.settled).toHaveLength(1);
    lost.abort();
    await body?.cancel().catch(() => undefined);
  });

  it("runs once where its handler throws after its end, and the answer goes out later", async () => {
    const whole = "x".repeat(2 ** 24);
    const shop = await open(
      (_request, response) => {
        response.end(whole);
        throw new Error("broken");
      },
      (app) => app.use(neverClose),
    );
    const { headers } = await createBuyer().payFor(`${shop.url}/stream`);
    const answer = await fetch(`${shop.url}/stream`, { headers });
    expect(await answer.text()).toBe(whole);
    await supertest(shop.url).get("/stream").set(headers).expect(402);
  });

  it("counts the bytes of another realm's buffers", async () => {
    const bytes: Uint8Array = runInNewContext("Uint8Array.of(104, 97, 108, 102)");
    const shop = await open((_request, response) => {
      response.set("Content-Length", "8");
      response.write(bytes);
      response.end(bytes);
    });
    const { headers } = await createBuyer().payFor(`${shop.url}/stream`);
    await supertest(shop.url).get("/stream").set(headers).expect(200, "halfhalf");
    await supertest(shop.url).get("/stream").set(headers).expect(402);
  });

  it("runs once where its handler ends its answer and then destroys the response", async () => {
    let runs = 0;
    const shop = await open((_request, response) => {
      runs += 1;
      response.end("whole");
      response.destroy();
    });
    const { headers } = await createBuyer().payFor(`${shop.url}/stream`);
    const answer = await fetch(`${shop.url}/stream`, { headers });
    expect(await answer.text()).toBe("whole");
    await supertest(shop.url).get("/stream").set(headers).expect(402);
    expect(runs).toBe(1);
  });

  it("may be requested once more with the same payment when its buyer left early", async () => {
    let runs = 0;
    const shop = await open((_request, response) => {
      runs += 1;
      if (runs < 2) response.write("half");
      else response.send("whole");
    });
    const { headers } = await createBuyer().payFor(`${shop.url}/stream`);
    const leaveInTheMiddle = () =>
      new Promise<void>((resolve) => {
        const request = get(`${shop.url}/stream`, { headers }, (response) => {
          response.on("data", () => request.destroy());
          response.on("close", resolve);
          response.on("error", () => undefined);
        });
      });
    await leaveInTheMiddle();
    await expect
      .poll(async () => (await supertest(shop.url).get("/stream").set(headers)).status, {
        interval: 5,
      })
      .toBe(200);
    await supertest(shop.url).get("/stream").set(headers).expect(402);
    expect(runs).toBe(2);
    expect(shop.facilitator.settled).toHaveLength(1);
  });
});
