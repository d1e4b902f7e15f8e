import { connect } from "node:net";
import type { Request, Response } from "express";
import supertest from "supertest";
import { describe, expect, it, onTestFinished } from "vitest";
import { createReservationStore, type PaymentMiddlewareOptions, readLoad } from "../index.ts";
import { createBuyer } from "../testing/buyer.ts";
import { openShop, option } from "../testing/shop.ts";
import { createLoad } from "./load.ts";
import { OverloadWarning, refuseLoad } from "./overload-report.ts";

/** A shop whose handlers answer when a test says so. */
async function open(options: PaymentMiddlewareOptions) {
  const running: Response[] = [];
  const serve = (response: Response) => void running.push(response);
  const shop = await openShop({
    routes: {
      "/slow": { accepts: option(), onDisconnect: "release" },
      "/fast": { accepts: option() },
    },
    serve(app) {
      app.all("/slow", (_request, response) => serve(response));
      app.all("/fast", (_request, response) => void response.send("sold"));
    },
    options,
  });
  onTestFinished(async () => {
    for (const response of running) response.end();
    // However the requests ended, nothing of them may stay in the counts.
    await expect.poll(readLoad).toMatchObject({ places: 0, waiting: 0, heldBytes: 0 });
    await shop.close();
  });
  const url = `${shop.url}/slow`;
  return {
    ...shop,
    running,
    finish() {
      for (const response of running.splice(0)) response.send("sold");
    },
    pay: async (path: string, buyer = createBuyer()) =>
      supertest(shop.url)
        .get(path)
        .set((await buyer.payFor(url)).headers),
    /** Pays until the handlers of all payments run. */
    async occupy(count: number) {
      const before = running.length;
      const answers = [];
      for (let index = 0; index < count; index += 1) {
        const { headers } = await createBuyer().payFor(url);
        answers.push(
          supertest(shop.url)
            .get("/slow")
            .set(headers)
            .then((answer) => answer),
        );
      }
      await expect.poll(() => running.length).toBe(before + count);
      return answers;
    },
  };
}

describe("a process at its limit of paid requests", () => {
  it("answers 503 with Retry-After before anything is verified, and sells again below it", async () => {
    const shop = await open({ maxPaidRequests: 2 });
    const answers = await shop.occupy(2);
    const { verifications } = shop.facilitator;
    const before = readLoad();
    const payment = await createBuyer().payFor(`${shop.url}/fast`);
    for (let count = 1; count <= 3; count += 1) {
      const refused = await supertest(shop.url).get("/fast").set(payment.headers);
      expect(refused.status).toBe(503);
      expect(refused.headers["retry-after"]).toBe("1");
      expect(refused.body).toMatchObject({ error: "overloaded", charged: false });
    }
    expect(shop.facilitator.verifications).toBe(verifications);
    expect(readLoad()).toEqual({ ...before, refusals: before.refusals + 3 });
    expect((await supertest(shop.url).get("/fast")).status).toBe(402);

    shop.finish();
    for (const answer of answers) expect((await answer).status).toBe(200);
    expect((await supertest(shop.url).get("/fast").set(payment.headers)).status).toBe(200);
    expect(shop.facilitator.settled).toHaveLength(3);
  });

  it("still delivers a payment whose money has moved", async () => {
    const shop = await open({ maxPaidRequests: 1 });
    shop.facilitator.onSettle = async (settle) => {
      settle();
      throw new Error("The connection was lost");
    };
    const payment = await createBuyer().payFor(`${shop.url}/fast`);
    const unclear = await supertest(shop.url).get("/fast").set(payment.headers);
    expect(unclear.body).toMatchObject({ error: "settlement_pending" });
    shop.facilitator.onSettle = undefined;
    await shop.occupy(1);

    expect((await shop.pay("/fast")).status).toBe(503);
    expect((await supertest(shop.url).get("/fast").set(payment.headers)).status).toBe(200);
  });

  it("says nothing of a charge to a payment that it has not looked up", async () => {
    const shop = await open({ maxPaidRequests: 1 });
    shop.facilitator.onSettle = async (settle) => {
      settle();
      throw new Error("The connection was lost");
    };
    const paid = [];
    for (let count = 1; count <= 2; count += 1) {
      const { headers } = await createBuyer().payFor(`${shop.url}/fast`);
      const unclear = await supertest(shop.url).get("/fast").set(headers);
      expect(unclear.body).toMatchObject({ error: "settlement_pending" });
      paid.push(headers);
    }
    const [first = {}, second = {}] = paid;
    await shop.occupy(1);
    const ends: (() => void)[] = [];
    shop.facilitator.onSettle = async (settle) => {
      await new Promise<void>((resolve) => ends.push(resolve));
      return settle();
    };
    const resumed = supertest(shop.url)
      .get("/fast")
      .set(first)
      .then((answer) => answer);
    await expect.poll(() => ends.length).toBe(1);

    const refused = await supertest(shop.url).get("/fast").set(second);
    expect(refused.status).toBe(503);
    expect(refused.headers["retry-after"]).toBe("1");
    expect(refused.body).toEqual({
      error: "overloaded",
      message: expect.not.stringContaining("charged"),
    });
    shop.facilitator.onSettle = undefined;
    for (const end of ends) end();
    expect((await resumed).status).toBe(200);
    expect((await supertest(shop.url).get("/fast").set(second)).status).toBe(200);
  });

  it("keeps half of its places from the unverified payments of one client", async () => {
    const clientKey = (request: Request) => request.get("X-Client") ?? "";
    const shop = await open({ maxPaidRequests: 4, clientKey });
    const ends: (() => void)[] = [];
    shop.facilitator.onVerify = async () => {
      await new Promise<void>((resolve) => ends.push(resolve));
      return { isValid: false, invalidReason: "insufficient_funds" };
    };
    const pay = async (client: string) => {
      const { headers } = await createBuyer().payFor(`${shop.url}/fast`);
      return await supertest(shop.url).get("/fast").set(headers).set("X-Client", client);
    };
    const answers = [pay("one"), pay("one")];
    await expect.poll(() => ends.length).toBe(2);
    expect((await pay("one")).status).toBe(503);
    expect(readLoad()).toMatchObject({ places: 2 });
    shop.facilitator.onVerify = undefined;
    expect((await pay("another")).status).toBe(200);
    for (const end of ends) end();
    for (const answer of answers) expect((await answer).status).toBe(402);
    expect((await pay("one")).status).toBe(200);
  });

  it("counts no request whose body is still on its way", async () => {
    const shop = await open({ maxPaidRequests: 1 });
    const { headers } = await createBuyer().payFor(`${shop.url}/fast`, {
      init: { method: "POST" },
    });
    const socket = connect(shop.port);
    onTestFinished(() => void socket.destroy());
    const head = Object.entries({ Host: "shop", "Content-Length": "10", ...headers });
    socket.write(
      `POST /fast HTTP/1.1\r\n${head.map((line) => `${line.join(": ")}\r\n`).join("")}\r\n12345`,
    );
    let answer = "";
    socket.on("data", (chunk) => {
      answer += chunk.toString("latin1");
    });
    await expect.poll(readLoad).toMatchObject({ places: 0 });
    expect((await shop.pay("/fast")).status).toBe(200);
    socket.write("67890");
    await expect.poll(() => answer).toContain("200 OK");
  });

  it("counts no request that waits for others of its payer", async () => {
    const reservations = createReservationStore({ maxReleasesPerMinute: 2 });
    const shop = await open({ maxPaidRequests: 3, reservations });
    const buyer = createBuyer();
    const answers = [];
    for (let count = 1; count <= 5; count += 1) {
      answers.push(shop.pay("/slow", buyer));
      await expect.poll(() => shop.facilitator.verifications).toBe(count);
      // Two may run unpaid, and the others wait for these.
      const places = Math.min(count, 2);
      await expect.poll(() => shop.running.length).toBe(places);
      await expect.poll(readLoad).toMatchObject({ places, waiting: count - places });
    }
    expect((await shop.pay("/fast")).status).toBe(200);
    const ends = Promise.all(answers);
    let areAllSold = false;
    void ends.then(() => {
      areAllSold = true;
    });
    await expect
      .poll(() => {
        shop.finish();
        return areAllSold;
      })
      .toBe(true);
    for (const answer of answers) expect((await answer).status).toBe(200);
  });
});

describe("a process with as many waiting requests as places", () => {
  it("answers another request of that payer at once, and sells to others", async () => {
    const reservations = createReservationStore({ maxReleasesPerMinute: 1 });
    const shop = await open({ maxPaidRequests: 2, reservations });
    const buyer = createBuyer();
    const answers = [];
    for (let count = 1; count <= 3; count += 1) {
      answers.push(shop.pay("/slow", buyer));
      await expect.poll(readLoad).toMatchObject({ places: 1, waiting: count - 1 });
    }
    const refused = await shop.pay("/slow", buyer);
    expect(refused.status).toBe(429);
    expect(refused.headers["retry-after"]).toBe("1");
    expect((await shop.pay("/fast")).status).toBe(200);
    for (let sold = 1; sold <= 3; sold += 1) {
      await expect.poll(() => shop.running.length).toBe(1);
      shop.finish();
      await expect.poll(() => shop.facilitator.settled.length).toBe(sold + 1);
    }
    for (const answer of answers) expect((await answer).status).toBe(200);
  });
});

describe("a process at its limit of bytes", () => {
  it("gives up a held answer beyond it without a charge, and takes no new payment", async () => {
    const shop = await open({
      maxHeldBytes: 100_000,
      maxRequestBytes: 0,
      maxResponseBytes: 100_000,
    });
    const [full, other] = await shop.occupy(2);
    const [first, second] = shop.running;
    first?.write("x".repeat(99_000));
    second?.write("x".repeat(2_000));
    const refused = await other;
    expect(refused?.status).toBe(503);
    expect(refused?.body).toMatchObject({ error: "overloaded", charged: false });
    first?.write("x".repeat(1_000));
    expect((await shop.pay("/fast")).status).toBe(503);
    first?.end();
    expect((await full)?.status).toBe(200);
    expect((await shop.pay("/fast")).status).toBe(200);
    expect(shop.facilitator.settled).toHaveLength(2);
  });
});

describe("a process whose bytes are all in a paid answer that is not read", () => {
  const answerBytes = 32 * 2 ** 20;
  const patient = { timeout: 20_000 };

  /** A shop with one buyer who has paid, and whose connection takes no more of the answer. */
  async function openWithUnreadAnswer() {
    const shop = await openShop({
      routes: {
        "/large": { accepts: option() },
        "/fast": { accepts: option() },
      },
      serve(app) {
        app.get("/large", (_request, response) => void response.send("x".repeat(answerBytes)));
        app.get("/fast", (_request, response) => void response.send("sold"));
      },
      options: { maxRequestBytes: 0, maxResponseBytes: answerBytes, maxHeldBytes: answerBytes },
    });
    const { headers } = await createBuyer().payFor(`${shop.url}/large`);
    const head = Object.entries({ Host: "shop", ...headers });
    const socket = connect(shop.port);
    onTestFinished(async () => {
      socket.destroy();
      await expect.poll(readLoad, patient).toMatchObject({ places: 0, heldBytes: 0 });
      await shop.close();
    });
    socket.pause();
    socket.write(
      `GET /large HTTP/1.1\r\n${head.map((line) => `${line.join(": ")}\r\n`).join("")}\r\n`,
    );
    await expect.poll(() => shop.facilitator.settled.length, patient).toBe(1);
    await expect.poll(readLoad, patient).toMatchObject({ places: 0, heldBytes: answerBytes });
    const pay = async () => {
      const payment = await createBuyer().payFor(`${shop.url}/fast`);
      return supertest(shop.url).get("/fast").set(payment.headers);
    };
    return { ...shop, socket, pay };
  }

  it("answers others 503 with Retry-After at once, verifies nothing, and still asks for payment", async () => {
    const shop = await openWithUnreadAnswer();
    const { verifications } = shop.facilitator;
    for (let count = 1; count <= 3; count += 1) {
      const refused = await shop.pay();
      expect(refused.status).toBe(503);
      expect(refused.headers["retry-after"]).toBe("1");
      expect(refused.body).toMatchObject({ error: "overloaded", charged: false });
    }
    expect(shop.facilitator.verifications).toBe(verifications);
    expect((await supertest(shop.url).get("/fast")).status).toBe(402);
  });

  it("sells again once it is read, and delivers all of it", async () => {
    const shop = await openWithUnreadAnswer();
    let received = 0;
    shop.socket.on("data", (chunk) => {
      received += chunk.length;
    });
    shop.socket.resume();
    await expect.poll(readLoad, patient).toMatchObject({ heldBytes: 0 });
    await expect.poll(() => received, patient).toBeGreaterThan(answerBytes);
    expect((await shop.pay()).status).toBe(200);
  });

  it("sells again once its buyer has left", async () => {
    const shop = await openWithUnreadAnswer();
    shop.socket.destroy();
    await expect.poll(readLoad, patient).toMatchObject({ heldBytes: 0 });
    expect((await shop.pay()).status).toBe(200);
  });
});

it("refusals are reported at once, and then once a minute with their number", () => {
  const load = createLoad();
  const limits = { maxPaidRequests: 2, maxHeldBytes: 10 };
  const reports: unknown[] = [];
  for (let second = 0; second < 180; second += 1) {
    refuseLoad(load, limits, (error) => reports.push(error), 1_000 * second);
  }
  expect(reports).toHaveLength(3);
  expect(reports[1]).toBeInstanceOf(OverloadWarning);
  expect(String(reports[1])).toContain("60 more got 503");
});
