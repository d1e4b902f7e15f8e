import { get, request as sendRequest } from "node:http";
import { connect } from "node:net";
import { headerName } from "@coinslot/protocol";
import { afterEach, describe, expect, it } from "vitest";
import { createBuyer } from "../testing/buyer.ts";
import { openShop, option, type Shop } from "../testing/shop.ts";

const opened: Shop[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((shop) => shop.close()));
});

/** A shop whose handler waits, and whose buyer leaves meanwhile. */
async function open(onDisconnect?: "release" | "settle") {
  let runs = 0;
  const waiting: (() => void)[] = [];
  const left: (() => void)[] = [];
  const payment = { accepts: option(), ...(onDisconnect && { onDisconnect }) };
  const shop = await openShop({
    routes: { "GET /work": payment, "POST /work": payment },
    serve(app) {
      app.all("/work", (_request, response) => {
        runs += 1;
        if (runs > 1) {
          response.send(`run ${runs}`);
          return;
        }
        response.once("close", () => left.splice(0).forEach((tell) => void tell()));
        waiting.splice(0).forEach((tell) => void tell());
        finish = () => response.send(`run 1`);
      });
    },
  });
  opened.push(shop);
  let finish = (): unknown => undefined;

  /** Sends a payment, waits until the handler runs, and leaves. */
  async function payAndLeave(method: "GET" | "POST", key?: string) {
    const payment = await createBuyer().payFor(`${shop.url}/work`, { init: { method } });
    const headers: Record<string, string> = {
      ...payment.headers,
      ...(key === undefined ? {} : { [headerName.idempotencyKey]: key }),
    };
    const isRunning = new Promise<void>((resolve) => waiting.push(resolve));
    const hasLeft = new Promise<void>((resolve) => left.push(resolve));
    const send = method === "GET" ? get : sendRequest;
    const request = send(`${shop.url}/work`, { method, headers });
    request.on("error", () => undefined);
    request.end();
    await isRunning;
    request.destroy();
    await hasLeft;
    return () => fetch(`${shop.url}/work`, { method, headers });
  }

  return { ...shop, payAndLeave, finish: () => finish(), runs: () => runs };
}

describe("a buyer who leaves while the handler runs", () => {
  it.each([
    ["GET", undefined],
    ["POST", "release"],
  ] as const)(
    "is not charged for %s (onDisconnect: %s), and may pay with the same payment",
    async (method, onDisconnect) => {
      const shop = await open(onDisconnect);
      const again = await shop.payAndLeave(method);
      await expect.poll(async () => (await again()).status, { interval: 5 }).toBe(200);
      shop.finish();
      expect(shop.facilitator.settled).toHaveLength(1);
      expect(shop.runs()).toBe(2);
    },
  );

  it.each([
    ["POST", undefined],
    ["GET", "settle"],
  ] as const)(
    "is charged for %s (onDisconnect: %s), and the answer is kept for its key",
    async (method, onDisconnect) => {
      const shop = await open(onDisconnect);
      const again = await shop.payAndLeave(method, "the buyer's secret");
      expect((await again()).status).toBe(409);
      shop.finish();
      await expect.poll(() => shop.facilitator.settled.length, { interval: 5 }).toBe(1);
      const answers: Response[] = [];
      await expect
        .poll(
          async () => {
            answers.push(await again());
            return answers.at(-1)?.status;
          },
          { interval: 5 },
        )
        .toBe(200);
      expect(await answers.at(-1)?.text()).toBe("run 1");
      expect(shop.runs()).toBe(1);
    },
  );

  it("is charged for POST, and the same request without a key finds the answer once", async () => {
    const shop = await open();
    const again = await shop.payAndLeave("POST");
    shop.finish();
    await expect.poll(() => shop.facilitator.settled.length, { interval: 5 }).toBe(1);
    await expect.poll(async () => (await again()).status, { interval: 5 }).toBe(200);
    expect(shop.runs()).toBe(1);
    expect(shop.facilitator.settled).toHaveLength(1);
    expect((await again()).status).toBe(402);
  });

  it("finds the answer with the same payment when it left during the settlement", async () => {
    let settled: () => void = () => undefined;
    let settling: () => void = () => undefined;
    let noticed: () => void = () => undefined;
    const isNoticed = new Promise<void>((resolve) => {
      noticed = resolve;
    });
    const isSettling = new Promise<void>((resolve) => {
      settling = resolve;
    });
    const shop = await openShop({
      routes: { "GET /work": { accepts: option() } },
      serve(app) {
        app.get("/work", (_request, response) => {
          response.on("close", noticed);
          response.send("answer");
        });
      },
    });
    opened.push(shop);
    shop.facilitator.onSettle = async (settle) => {
      settling();
      await new Promise<void>((resolve) => {
        settled = resolve;
      });
      return settle();
    };
    const { headers } = await createBuyer().payFor(`${shop.url}/work`);
    const request = get(`${shop.url}/work`, { headers });
    request.on("error", () => undefined);
    await isSettling;
    request.destroy();
    await isNoticed;
    settled();
    shop.facilitator.onSettle = undefined;
    await expect
      .poll(async () => (await fetch(`${shop.url}/work`, { headers })).status, { interval: 5 })
      .toBe(200);
    expect(shop.facilitator.settled).toHaveLength(1);
  });
});

describe("a buyer who leaves while the request waits behind another on its connection", () => {
  /** Sends the payment behind a request that is never answered, and leaves once `isBegun`. */
  async function payAndLeave(onDisconnect: "release" | "settle") {
    let runs = 0;
    let finish: () => void = () => undefined;
    const shop = await openShop({
      routes: { "GET /work": { accepts: option(), onDisconnect } },
      serve(app) {
        app.get("/never", () => undefined);
        app.get("/work", (_request, response) => {
          runs += 1;
          if (runs > 1) response.send(`run ${runs}`);
          else finish = () => response.send("run 1");
        });
      },
    });
    opened.push(shop);
    const { headers } = await createBuyer().payFor(`${shop.url}/work`);
    const payment = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const socket = connect(shop.port);
    socket.write("GET /never HTTP/1.1\r\nHost: shop\r\n\r\n");
    socket.write(`GET /work HTTP/1.1\r\nHost: shop\r\n${payment.join("")}\r\n`);
    await expect.poll(() => runs, { interval: 5 }).toBe(1);
    socket.destroy();
    const again = () => fetch(`${shop.url}/work`, { headers });
    return { shop, again, finish: () => finish(), runs: () => runs };
  }

  it("is not charged when the route releases, and may pay with the same payment", async () => {
    const { shop, again, finish, runs } = await payAndLeave("release");
    await expect.poll(async () => (await again()).status, { interval: 5 }).toBe(200);
    finish();
    expect(runs()).toBe(2);
    expect(shop.facilitator.settled).toHaveLength(1);
  });

  it("is charged when the route settles, and finds the answer with the same payment", async () => {
    const { shop, again, finish, runs } = await payAndLeave("settle");
    expect((await again()).status).toBe(409);
    finish();
    await expect.poll(async () => (await again()).status, { interval: 5 }).toBe(200);
    expect(runs()).toBe(1);
    expect(shop.facilitator.settled).toHaveLength(1);
  });
});
