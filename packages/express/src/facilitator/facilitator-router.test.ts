import { setImmediate as nextTurn } from "node:timers/promises";
import { type Listening, listen } from "@coinslot/devnet";
import { CallerGoneError, type Facilitator, FacilitatorError } from "@coinslot/protocol";
import type { Request } from "express";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import { createFacilitatorClient, facilitatorRouter, readLoad } from "../index.ts";
import { createBuyer, type SignedPayment } from "../testing/buyer.ts";
import { expressVersions } from "../testing/express-versions.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { option } from "../testing/shop.ts";

const opened: Listening[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

const requirements = {
  scheme: "exact",
  network: "eip155:9745",
  amount: "1000",
  asset: "0xB8CE59FC3717ada4C02eaDF9682A9e934F625ebb",
  payTo: "0x00000000000000000000000000000000000beef1",
  maxTimeoutSeconds: 300,
  extra: { name: "USDT0", version: "1" },
} as const;

function signOne(): Promise<SignedPayment> {
  return createBuyer().sign({ x402Version: 2, requirements, accepted: requirements });
}

function createDeferred() {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve: () => resolve() };
}

describe("an overloaded facilitator's router", () => {
  it("refuses verifications before settlements, with a reason and a time to retry", async () => {
    const facilitator = createPaperFacilitator();
    const done = createDeferred();
    facilitator.onSettle = async (settle) => {
      await done.promise;
      return settle();
    };
    const [first] = expressVersions;
    if (first === undefined) throw new Error("No Express");
    const app = first.express();
    const errors: unknown[] = [];
    const onError = (error: unknown) => errors.push(error);
    app.use(facilitatorRouter(facilitator, { onError, maxPaidRequests: 2 }));
    const listening = await listen(app);
    opened.push(listening);
    const post = async (path: string) => {
      const { payload } = await signOne();
      const body = { x402Version: 2, paymentPayload: payload, paymentRequirements: requirements };
      return await supertest(listening.url).post(path).send(body);
    };
    const settlements = [post("/settle"), post("/settle")];
    await expect.poll(() => readLoad().places).toBe(2);

    const verified = await post("/verify");
    expect(verified.status).toBe(503);
    expect(verified.headers["retry-after"]).toBe("1");
    expect(verified.body).toMatchObject({ isValid: false, invalidReason: "overloaded" });
    settlements.push(post("/settle"));
    await expect.poll(() => readLoad().places).toBe(3);
    const refused = await post("/settle");
    expect(refused.status).toBe(503);
    expect(refused.body).toMatchObject({ success: false, errorReason: "overloaded" });

    done.resolve();
    for (const settled of settlements) expect((await settled).body.success).toBe(true);
    expect(facilitator.settled).toHaveLength(3);
    expect((await post("/verify")).body.isValid).toBe(true);
    expect(readLoad().places).toBe(0);
  });
});

describe.each(expressVersions)("the facilitator's router on $name", ({ express }) => {
  async function open(parse = false) {
    const facilitator = createPaperFacilitator();
    const errors: unknown[] = [];
    const app = express();
    if (parse) app.use(express.json());
    const onError = (error: unknown) => errors.push(error);
    app.use("/x402", facilitatorRouter(facilitator, { onError, maxRequestBytes: 20_000 }));
    app.get("/elsewhere", (_request, response) => {
      response.send("not ours");
    });
    const listening = await listen(app);
    opened.push(listening);
    // An async function: supertest sends a request when it is awaited, and no sooner.
    const post = async (path: string, body: object | string, headers = {}) =>
      await supertest(listening.url)
        .post(`/x402${path}`)
        .set({ "Content-Type": "application/json", ...headers })
        .send(body);
    return { ...listening, facilitator, errors, post };
  }

  it("identifies its caller for limits by the client's key, else by its address", async () => {
    const seen: unknown[] = [];
    const paper = createPaperFacilitator();
    const facilitator: Facilitator = {
      ...paper,
      verify: (payload, required, options) => {
        seen.push(["verify", options?.limitKey]);
        return paper.verify(payload, required, options);
      },
      settle: (payload, required, options) => {
        seen.push(["settle", options?.limitKey]);
        return paper.settle(payload, required, options);
      },
    };
    const clientKey = (request: Request) => request.get("X-API-Key");
    const app = express().set("trust proxy", 1);
    const listening = await listen(app.use(facilitatorRouter(facilitator, { clientKey })));
    opened.push(listening);
    const { payload } = await signOne();
    const body = JSON.stringify({
      x402Version: 2,
      paymentPayload: payload,
      paymentRequirements: requirements,
    });
    for (const path of ["/verify", "/settle"]) {
      for (const headers of [{ "X-API-Key": "shop" }, { "X-Forwarded-For": "203.0.113.9" }]) {
        const sent = { "Content-Type": "application/json", ...headers };
        await supertest(listening.url).post(path).set(sent).send(body);
      }
    }
    expect(seen).toEqual([
      ["verify", "client shop"],
      ["verify", "address 203.0.113.9"],
      ["settle", "client shop"],
      ["settle", "address 203.0.113.9"],
    ]);
  });

  it("says that a caller has left its verification, which is no fault", async () => {
    let isAsked = false;
    let isGone = (): boolean => false;
    const wait = createDeferred();
    const errors: unknown[] = [];
    const facilitator: Facilitator = {
      ...createPaperFacilitator(),
      async verify(_payload, _required, options) {
        isGone = () => options?.wait?.isGone() === true;
        isAsked = true;
        await wait.promise;
        throw new CallerGoneError();
      },
    };
    const onError = (error: unknown) => errors.push(error);
    const listening = await listen(express().use(facilitatorRouter(facilitator, { onError })));
    opened.push(listening);
    const { payload } = await signOne();
    const leaving = new AbortController();
    const call = fetch(`${listening.url}/verify`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({
        x402Version: 2,
        paymentPayload: payload,
        paymentRequirements: requirements,
      }),
      signal: leaving.signal,
    });
    await expect.poll(() => isAsked).toBe(true);
    expect(isGone()).toBe(false);
    leaving.abort();
    await expect(call).rejects.toThrow();
    await expect.poll(() => isGone()).toBe(true);
    wait.resolve();
    // The router has handled the error by then: nothing but microtasks is between them.
    await nextTurn();
    expect(errors).toEqual([]);
  });

  it.each([false, true])("verifies and settles (application's body parser: %s)", async (parse) => {
    const { post, url } = await open(parse);
    const { payload } = await signOne();
    const body = { x402Version: 2, paymentPayload: payload, paymentRequirements: requirements };
    const verified = await post("/verify", body);
    expect(verified.status).toBe(200);
    expect(verified.body).toMatchObject({ isValid: true });
    const settled = await post("/settle", body);
    expect(settled.body).toMatchObject({ success: true, network: "eip155:9745" });
    const again = await post("/verify", body);
    expect(again.status).toBe(200);
    expect(again.body).toMatchObject({
      isValid: false,
      invalidReason: "invalid_exact_evm_nonce_already_used",
    });
    const supported = await supertest(url).get("/x402/supported");
    expect(supported.body).toMatchObject({
      kinds: [{ x402Version: 1 }, { x402Version: 2 }],
    });
  });

  it("passes on the caller's idempotency key for a settlement", async () => {
    const { facilitator, post } = await open();
    const keys: (string | undefined)[] = [];
    facilitator.onSettle = async (settle, key) => {
      keys.push(key);
      return settle();
    };
    const { payload } = await signOne();
    const body = { x402Version: 2, paymentPayload: payload, paymentRequirements: requirements };
    await post("/settle", body, { "Idempotency-Key": "seller-7" });
    expect(keys).toEqual(["seller-7"]);
  });

  it.each([
    ["malformed JSON", "{", {}],
    ["another content type", "a=b", { "Content-Type": "application/x-www-form-urlencoded" }],
    ["no body", "", {}],
    ["an array", "[]", {}],
    ["a missing member", { x402Version: 2 }, {}],
    ["an unknown encoding", "{}", { "Content-Encoding": "rot13" }],
  ])("answers %s with 400, in the form of the endpoint", async (_case, body, headers) => {
    const { post } = await open();
    const verified = await post("/verify", body, headers);
    expect(verified.status).toBe(400);
    expect(verified.body).toMatchObject({
      isValid: false,
      invalidReason: "invalid_payload",
    });
    const settled = await post("/settle", body, headers);
    expect(settled.status).toBe(400);
    expect(settled.body).toMatchObject({
      success: false,
      errorReason: "invalid_payload",
      transaction: "",
    });
  });

  it("answers malformed requirements with 400 and a reason of their own", async () => {
    const { post } = await open();
    const { payload } = await signOne();
    const answer = await post("/verify", {
      x402Version: 2,
      paymentPayload: payload,
      paymentRequirements: { ...requirements, amount: 1000 },
    });
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ invalidReason: "invalid_payment_requirements" });
  });

  it("answers an oversized body with 413", async () => {
    const { post } = await open();
    const answer = await post("/verify", { filling: "x".repeat(30_000) });
    expect(answer.status).toBe(413);
    expect(answer.body).toMatchObject({ isValid: false });
  });

  it.each([
    [
      "that may pass, with 503",
      new FacilitatorError("at http://rpc/key", { kind: "unavailable" }),
      503,
    ],
    ["that will not pass, with 500", new TypeError("at http://rpc/key"), 500],
  ])("answers internal faults %s, without the payer", async (_case, error, status) => {
    const { facilitator, post, errors } = await open();
    const { payload } = await signOne();
    const body = { x402Version: 2, paymentPayload: payload, paymentRequirements: requirements };
    facilitator.onVerify = () => {
      throw error;
    };
    facilitator.onSettle = async () => {
      throw error;
    };
    const verified = await post("/verify", body);
    expect(verified.status).toBe(status);
    const words = verified.text;
    expect(JSON.parse(words)).toMatchObject({ invalidReason: "unexpected_verify_error" });
    const settled = await post("/settle", body);
    expect(settled.status).toBe(status);
    const settledWords = settled.text;
    expect(JSON.parse(settledWords)).toMatchObject({ errorReason: "unexpected_settle_error" });
    expect(words + settledWords).not.toContain("rpc");
    expect(errors).toEqual([error, error]);
  });

  it("sends the facilitator's retry time, and its client reads it", async () => {
    const { facilitator, post, url } = await open();
    const { payload } = await signOne();
    const body = { x402Version: 2, paymentPayload: payload, paymentRequirements: requirements };
    facilitator.onSettle = async () => {
      throw new FacilitatorError("full", { kind: "unavailable", retryAfterSeconds: 37 });
    };
    expect((await post("/settle", body)).get("retry-after")).toBe("37");
    const client = createFacilitatorClient({ url: `${url}/x402` });
    await expect(client.settle(payload, requirements)).rejects.toMatchObject({
      kind: "unavailable",
      retryAfterSeconds: 37,
    });
  });

  it("answers other paths and methods in JSON, and leaves the application's other routes alone", async () => {
    const { url, post } = await open();
    const missing = await post("/other", {});
    expect(missing.status).toBe(404);
    expect(missing.body).toMatchObject({ error: "not_found" });
    const wrong = await supertest(url).get("/x402/verify").expect(405);
    expect(wrong.get("Allow")).toBe("POST");
    expect(wrong.body).toMatchObject({ error: "method_not_allowed" });
    expect((await post("/supported", {})).status).toBe(405);
    await supertest(url).get("/elsewhere").expect(200, "not ours");
  });

  it("accepts the payments for a shop's routes", () => {
    expect(option().network).toBe(requirements.network);
  });
});
