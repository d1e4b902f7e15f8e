import { type Listening, listen } from "@coinslot/devnet";
import { decodeReceipt, FacilitatorError, headerName, plasma } from "@coinslot/protocol";
import express from "express";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import { createFacilitatorClient, facilitatorRouter, paymentMiddleware } from "../index.ts";
import { createBuyer } from "../testing/buyer.ts";
import { createPaperFacilitator, type PaperFacilitator } from "../testing/paper-facilitator.ts";
import { openShop, option, type Shop } from "../testing/shop.ts";

const opened: Listening[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

interface CountingShop extends Shop {
  runs(): number;
}

async function open(facilitator?: PaperFacilitator): Promise<CountingShop> {
  let runs = 0;
  const shop = await openShop({
    facilitator,
    routes: {
      "GET /paid": { accepts: option() },
      "GET /upfront": { accepts: option(), paymentFlow: "upfront" },
    },
    serve(app) {
      app.get(["/paid", "/upfront"], (_request, response) => {
        runs += 1;
        response
          .cookie("session", "secret")
          .set({ ETag: '"secret"', Location: "/secret", "X-Secret": "secret" })
          .send(`secret ${runs}`);
      });
    },
  });
  opened.push(shop);
  return Object.assign(shop, { runs: () => runs });
}

async function buy(shop: Listening, path = "/paid", headers: Record<string, string> = {}) {
  const payment = await createBuyer().payFor(`${shop.url}${path}`);
  const all = { ...payment.headers, ...headers };
  // An async function: supertest sends a request when it is awaited, and no sooner.
  return { send: async () => await supertest(shop.url).get(path).set(all), headers: all };
}

describe("a facilitator in this process", () => {
  it.each([
    ["cannot be reached", new FacilitatorError("down", { kind: "unavailable" }), 503],
    ["returns malformed data", new FacilitatorError("no JSON", { kind: "bad_response" }), 502],
    ["has a bug at http://rpc.example/key", new TypeError("at http://rpc.example/key"), 503],
  ])(
    "leads to 5xx when it %s during verification, and no handler runs; an earlier request may have paid",
    async (_case, error, status) => {
      const shop = await open();
      shop.facilitator.onVerify = () => {
        throw error;
      };
      const { send } = await buy(shop);
      const answer = await send();
      expect(answer.status).toBe(status);
      expect(answer.text).not.toContain("rpc.example");
      expect(answer.body.message).toMatch(/\. This request has charged nothing$/);
      expect(shop.runs()).toBe(0);
      expect(shop.errors).toEqual([error]);
      shop.facilitator.onVerify = undefined;
      expect((await send()).status).toBe(200);
    },
  );

  it("has its retry time passed on to the buyer", async () => {
    const shop = await open();
    shop.facilitator.onVerify = () => {
      throw new FacilitatorError("full", { kind: "unavailable", retryAfterSeconds: 37 });
    };
    const answer = await (await buy(shop)).send();
    expect(answer.status).toBe(503);
    expect(answer.get("retry-after")).toBe("37");
    expect(shop.runs()).toBe(0);
  });

  it("leads to 502 by a malformed verification", async () => {
    const shop = await open();
    const shapeless: object = { isValid: "yes" };
    shop.facilitator.onVerify = () => Object.assign({ isValid: true }, shapeless);
    expect((await (await buy(shop)).send()).status).toBe(502);
    expect(shop.runs()).toBe(0);
  });

  it("leaves nothing of the handler's answer when it rejects a settlement", async () => {
    const shop = await open();
    shop.facilitator.onSettle = async () => ({
      success: false,
      errorReason: "invalid_exact_evm_transaction_failed",
      transaction: "0xfeed",
      network: plasma,
    });
    const { send } = await buy(shop);
    const answer = await send();
    expect(answer.status).toBe(402);
    expect(shop.runs()).toBe(1);
    expect(`${answer.text} ${JSON.stringify(answer.headers)}`).not.toContain("secret");
    expect(answer.body).toMatchObject({ error: "invalid_exact_evm_transaction_failed" });
    expect(decodeReceipt(answer.get(headerName.paymentResponse) ?? "")).toMatchObject({
      success: false,
      transaction: "0xfeed",
    });
  });

  it.each(["/paid", "/upfront"])(
    "leads to 503 when it never reports a settlement's outcome, and the same payment resumes on %s",
    async (path) => {
      const shop = await open();
      shop.facilitator.onSettle = async (settle) => {
        settle();
        throw new Error("the connection was cut");
      };
      const { send } = await buy(shop, path);
      const unclear = await send();
      expect(unclear.status).toBe(503);
      expect(unclear.get("Retry-After")).toBe("2");
      expect(unclear.body).toMatchObject({ error: "settlement_pending" });
      expect(decodeReceipt(unclear.get(headerName.paymentResponse) ?? "")).toMatchObject({
        success: false,
        errorReason: "settlement_pending",
      });
      shop.facilitator.onSettle = undefined;
      const answer = await send();
      expect(answer.status).toBe(200);
      expect(shop.facilitator.settled).toHaveLength(1);
      expect((await send()).status).toBe(402);
    },
  );

  it("yields the hash while it waits for the chain, in the body and in the receipt", async () => {
    const shop = await open();
    shop.facilitator.onSettle = async () => ({
      success: false,
      errorReason: "settlement_pending",
      transaction: "0xabc",
      network: plasma,
    });
    const { send } = await buy(shop);
    const answer = await send();
    expect(answer.status).toBe(503);
    expect(answer.body).toMatchObject({ transaction: "0xabc" });
    expect(decodeReceipt(answer.get(headerName.paymentResponse) ?? "").transaction).toBe("0xabc");
  });

  it("is asked for the same settlement with the same idempotency key", async () => {
    const shop = await open();
    const keys: (string | undefined)[] = [];
    shop.facilitator.onSettle = async (settle, key) => {
      keys.push(key);
      if (keys.length < 3) throw new Error("no answer");
      return settle();
    };
    const { send } = await buy(shop);
    expect((await send()).status).toBe(503);
    expect((await send()).status).toBe(503);
    expect((await send()).status).toBe(200);
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]).toBeTypeOf("string");
  });

  it("has not confirmed the transfer when it calls a repeated settlement a duplicate", async () => {
    const shop = await open();
    let asked = 0;
    shop.facilitator.onSettle = async () => {
      asked += 1;
      if (asked === 1) throw new Error("no answer");
      return {
        success: false,
        errorReason: "duplicate_settlement",
        transaction: "0xd",
        network: plasma,
      };
    };
    const { send } = await buy(shop);
    await send();
    expect((await send()).status).toBe(503);
    const stranger = await buy(shop);
    expect((await stranger.send()).status).toBe(402);
  });

  it("has the answer of an unclear settlement kept for the buyer's key, and runs nothing again", async () => {
    const shop = await open();
    shop.facilitator.onSettle = async (settle) => {
      settle();
      throw new Error("the connection was cut");
    };
    const key = { [headerName.idempotencyKey]: "a secret of the buyer" };
    const { send, headers } = await buy(shop, "/paid", key);
    expect((await send()).status).toBe(503);
    shop.facilitator.onSettle = undefined;
    const { [headerName.idempotencyKey]: _, ...withoutKey } = headers;
    await supertest(shop.url).get("/paid").set(withoutKey).expect(409);
    const answer = await send();
    expect(answer.status).toBe(200);
    expect(answer.text).toBe("secret 1");
    expect(answer.get("ETag")).toBe('"secret"');
    expect(answer.get("Set-Cookie")).toEqual([expect.stringContaining("session=secret")]);
    expect(shop.runs()).toBe(1);
  });
});

describe("before its facilitator is ready", () => {
  it("a gate answers 503 on paid routes, serves others as always, and `ready` rejects with the reason", async () => {
    const facilitator = createPaperFacilitator();
    let isUp = false;
    let now = 0;
    const supported = facilitator.getSupported;
    const told: unknown[] = [];
    const gate = paymentMiddleware(
      { "GET /paid": { accepts: option() } },
      {
        ...facilitator,
        getSupported: async () => {
          if (!isUp) throw new FacilitatorError("It is down", { kind: "unavailable" });
          return supported();
        },
      },
      { onError: (error) => told.push(error), now: () => now },
    );
    const app = express().use(gate);
    app.get(["/paid", "/free"], (_request, response) => {
      response.send("content");
    });
    const shop = await listen(app);
    opened.push(shop);
    await expect(gate.ready()).rejects.toThrow("It is down");
    expect(told).toHaveLength(1);
    const closed = await supertest(shop.url).get("/paid").expect(503);
    expect(closed.get("Retry-After")).toBe("1");
    await supertest(shop.url).get("/free").expect(200, "content");

    isUp = true;
    now = 10_000;
    await expect
      .poll(async () => (await supertest(shop.url).get("/paid")).status, { interval: 5 })
      .toBe(402);
  });

  it("a gate stays closed for a network that the facilitator does not serve", async () => {
    const gate = paymentMiddleware(
      { "GET /paid": { accepts: option({ network: "eip155:1" }) } },
      {
        ...createPaperFacilitator(),
        getSupported: async () => createPaperFacilitator().getSupported(),
      },
      { onError: () => undefined },
    );
    await expect(gate.ready()).rejects.toThrow(
      '"GET /paid": the facilitator does not serve eip155:1',
    );
    const shop = await listen(express().use(gate));
    opened.push(shop);
    await supertest(shop.url).get("/paid").expect(503);
  });
});

describe("a remote facilitator", () => {
  type Answer = (response: express.Response) => unknown;

  /** Starts a seller with a remote facilitator, of which one endpoint answers as it should not. */
  async function openRemote(broken?: { path: string; answer: Answer; isOver?: () => boolean }) {
    const paper = createPaperFacilitator();
    const app = express();
    app.use((request, response, next) => {
      if (broken?.path === request.path && !broken.isOver?.()) broken.answer(response);
      else next();
    });
    app.use(facilitatorRouter(paper, { onError: () => undefined }));
    const hosted = await listen(app);
    opened.push(hosted);
    const errors: unknown[] = [];
    let runs = 0;
    const gate = paymentMiddleware(
      { "GET /paid": { accepts: option() } },
      createFacilitatorClient({ url: hosted.url, timeoutMs: broken ? 1_000 : 30_000 }),
      { onError: (error) => errors.push(error) },
    );
    const seller = express().use(gate);
    seller.get("/paid", (_request, response) => {
      runs += 1;
      response.send("secret");
    });
    await gate.ready();
    const shop = await listen(seller);
    opened.push(shop);
    return { ...shop, runs: () => runs, paper };
  }

  const malformed: [string, Answer][] = [
    ["HTML", (response) => response.send("<html>")],
    ["nothing", (response) => response.end()],
    ["JSON of another form", (response) => response.json({ ok: true })],
    [
      "a success with a failure's status",
      (response) =>
        response.status(400).json({ isValid: true, success: true, transaction: "0x", network: "" }),
    ],
    ["a redirect", (response) => response.redirect("/elsewhere")],
    ["401", (response) => response.sendStatus(401)],
    ["an oversized answer", (response) => response.send("x".repeat(2 ** 20))],
  ];
  const unreachable: [string, Answer][] = [
    ["500", (response) => response.sendStatus(500)],
    ["a cut connection", (response) => response.destroy()],
    ["silence", () => undefined],
    ["a partial answer", (response) => response.write('{"isValid":')],
  ];

  it.each([
    ...malformed.map(([title, answer]) => [title, answer, 502] as const),
    ...unreachable.map(([title, answer]) => [title, answer, 503] as const),
  ])(
    "is never read as valid when it answers a verification with %s",
    async (_case, answer, status) => {
      const shop = await openRemote({ path: "/verify", answer });
      const { send } = await buy(shop);
      expect((await send()).status).toBe(status);
      expect(shop.runs()).toBe(0);
    },
  );

  it.each([...malformed, ...unreachable])(
    "leaves the outcome unknown, and the content unsent, when it answers a settlement with %s",
    async (_case, answer) => {
      let isBroken = true;
      const shop = await openRemote({ path: "/settle", answer, isOver: () => !isBroken });
      const { send } = await buy(shop);
      const unclear = await send();
      expect(unclear.status).toBe(503);
      expect(unclear.text).not.toContain("secret");
      isBroken = false;
      const resumed = await send();
      expect(resumed.status).toBe(200);
      expect(shop.paper.settled).toHaveLength(1);
    },
  );

  it("sells to buyers of version 1, and gets their payments in the form of version 1", async () => {
    const bodies: string[] = [];
    const shop = await openRemote();
    const verify = shop.paper.verify;
    shop.paper.verify = (payload, requirements, options) => {
      bodies.push(JSON.stringify(payload));
      return verify(payload, requirements, options);
    };
    const { headers } = await createBuyer().payFor(`${shop.url}/paid`, { version: 1 });
    await supertest(shop.url).get("/paid").set(headers).expect(200);
    expect(bodies[0]).toContain('"x402Version":1');
  });
});
