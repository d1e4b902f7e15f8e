import type { Listening } from "@coinslot/devnet";
import {
  type Address,
  encodePaymentPayload,
  headerName,
  plasmaUsdt0,
  type SettleResponse,
} from "@coinslot/protocol";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import { createReservationStore } from "../index.ts";
import { createBuyer } from "../testing/buyer.ts";
import { openShop, option, payTo, type Shop } from "../testing/shop.ts";

const opened: Listening[] = [];
let time = Date.now();

afterEach(async () => {
  time = Date.now();
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

/** A shop that answers with the payment as it reads it. */
async function open(): Promise<Shop> {
  const shop = await openShop({
    routes: {
      "GET /paid": { accepts: option(), handlerTimeoutSeconds: 1, maxTimeoutSeconds: 9 },
    },
    serve(app) {
      app.get("/paid", (request, response) => {
        response.send(request.payment?.amount);
      });
    },
    options: { now: () => time },
  });
  opened.push(shop);
  return shop;
}

/** Pays and gets an unknown outcome, although the money has moved. */
async function payUnclearly(shop: Shop, version: 1 | 2) {
  const url = `${shop.url}/paid`;
  const payment = await createBuyer().payFor(url, { version });
  shop.facilitator.onSettle = async (settle) => {
    settle();
    throw new Error("The connection was lost");
  };
  await supertest(url).get("").set(payment.headers).expect(503);
  shop.facilitator.onSettle = undefined;
  return { url, ...payment };
}

describe("a payment that was settled and not delivered", () => {
  it("is not resumed by a payment with other content than was signed", async () => {
    const shop = await open();
    const { url, payload, headers } = await payUnclearly(shop, 1);
    const { authorization } = payload.payload;
    const later = `${Number(authorization.validBefore) + 1}`;
    const change = { value: "999999999999", validBefore: later };
    for (const [name, value] of Object.entries(change)) {
      const forged = { ...authorization, [name]: value };
      const message = { ...payload, payload: { ...payload.payload, authorization: forged } };
      await supertest(url)
        .get("")
        .set(headerName.payment, encodePaymentPayload(message))
        .expect(409);
    }
    await supertest(url).get("").set(headers).expect(200, "1000");
  });

  it("is delivered after its authorization has expired, and only once", async () => {
    const shop = await open();
    const { url, headers, payload } = await payUnclearly(shop, 2);
    time = 1000 * (Number(payload.payload.authorization.validBefore) + 60);
    await supertest(url).get("").set(headers).expect(200, "1000");
    const again = await supertest(url).get("").set(headers).expect(402);
    expect(again.body).toMatchObject({ error: "invalid_exact_evm_nonce_already_used" });
  });

  it("is not given up when the facilitator reports it as used", async () => {
    const shop = await open();
    const { url, headers } = await payUnclearly(shop, 2);
    shop.facilitator.onSettle = async (): Promise<SettleResponse> => ({
      success: false,
      errorReason: "invalid_exact_evm_nonce_already_used",
      transaction: "",
      network: "eip155:9745",
    });
    const unclear = await supertest(url).get("").set(headers).expect(503);
    expect(unclear.body).toMatchObject({ error: "settlement_pending" });
    shop.facilitator.onSettle = undefined;
    await supertest(url).get("").set(headers).expect(200, "1000");
  });
});

it("an answer above the size limit is not kept: the same request runs the handler once more", async () => {
  let runs = 0;
  const shop = await openShop({
    routes: { "GET /small": { accepts: option() }, "GET /large": { accepts: option() } },
    serve(app) {
      app.get(["/small", "/large"], (request, response) => {
        runs += 1;
        response.send("x".repeat(request.path === "/large" ? 4_000 : 10));
      });
    },
    options: { maxKeptAnswerBytes: 2_000 },
  });
  opened.push(shop);
  for (const [path, expected] of [
    ["/small", 1],
    ["/large", 2],
  ] as const) {
    runs = 0;
    const url = `${shop.url}${path}`;
    const headers = {
      ...(await createBuyer().payFor(url)).headers,
      "Idempotency-Key": `a key for ${path} and nothing else`,
    };
    shop.facilitator.onSettle = async (settle) => {
      settle();
      throw new Error("The connection was lost");
    };
    await supertest(url).get("").set(headers).expect(503);
    shop.facilitator.onSettle = undefined;
    await supertest(url).get("").set(headers).expect(200);
    expect(runs).toBe(expected);
  }
});

it("an expired payment without a record is refused, without a call to the facilitator", async () => {
  const shop = await open();
  const url = `${shop.url}/paid`;
  const validBefore = BigInt(Math.floor(Date.now() / 1000) + 5);
  const { headers } = await createBuyer().payFor(url, { authorization: { validBefore } });
  const answer = await supertest(url).get("").set(headers).expect(402);
  expect(answer.body).toMatchObject({
    error: "invalid_exact_evm_payload_authorization_valid_before",
  });
  expect(shop.facilitator.verifications).toBe(0);
});

describe("a payment for an earlier result of a price function", () => {
  const { address, name, version, decimals } = plasmaUsdt0;
  const extra = { name, version, decimals };
  const atFirst: { amount: bigint; asset: Address; payTo: Address } = {
    amount: 1000n,
    asset: address,
    payTo,
  };
  let asked = atFirst;

  async function openVarying(change: Parameters<typeof openShop>[0]["options"] = {}) {
    asked = atFirst;
    const shop = await openShop({
      routes: {
        "GET /paid": {
          accepts: option({
            price: (request) => {
              const isLarge = request.get("X-Size") === "large";
              const amount = `${isLarge ? 9n * asked.amount : asked.amount}`;
              return { amount, asset: asked.asset, extra };
            },
            payTo: () => asked.payTo,
          }),
          varyHeaders: ["X-Size"],
        },
      },
      serve(app) {
        app.get("/paid", (request, response) => {
          response.send(request.payment?.amount);
        });
      },
      options: change,
    });
    opened.push(shop);
    return shop;
  }

  const another: Address = `0x${"b0".repeat(20)}`;

  it.each([
    { paid: 1, change: { amount: 2000n } },
    { paid: 2, change: { amount: 2000n } },
    { paid: 2, change: { amount: 999n } },
    { paid: 1, change: { payTo: another } },
    { paid: 2, change: { payTo: another } },
    { paid: 2, change: { asset: another } },
  ] as const)(
    "is delivered if the money has moved, in version $paid, whatever the price is now",
    async ({ paid, change }) => {
      const shop = await openVarying();
      const { url, headers } = await payUnclearly(shop, paid);
      asked = { ...atFirst, ...change };
      await supertest(url).get("").set(headers).expect(200, "1000");
      await supertest(url).get("").set(headers).expect(402);
      expect(shop.facilitator.settled).toHaveLength(1);
    },
  );

  it("is refused if no money has moved, without a call to the facilitator", async () => {
    const shop = await openVarying();
    const url = `${shop.url}/paid`;
    const { headers } = await createBuyer().payFor(url);
    asked = { ...atFirst, amount: 999n };
    const refused = await supertest(url).get("").set(headers).expect(402);
    expect(refused.body).toMatchObject({ error: "No matching payment requirements" });
    expect(shop.facilitator.verifications).toBe(0);
  });

  it("buys no other request: neither another URL, nor another value of a configured header", async () => {
    const shop = await openVarying();
    const { url, headers } = await payUnclearly(shop, 2);
    await supertest(url).get("").set(headers).set("X-Size", "large").expect(409);
    await supertest(url).get("?more").set(headers).expect(409);
    await supertest(url).get("").set(headers).expect(200, "1000");
  });

  it("does not undercut a static price or recipient", async () => {
    const reservations = createReservationStore();
    const cheap = await openVarying({ reservations });
    const { headers } = await payUnclearly(cheap, 2);
    const { address: asset } = plasmaUsdt0;
    for (const change of [{ price: { amount: "2000", asset, extra } }, { payTo: another }]) {
      const shop = await openShop({
        facilitator: cheap.facilitator,
        routes: {
          "GET /paid": {
            accepts: option({ price: () => ({ amount: "1000", asset, extra }), ...change }),
            varyHeaders: ["X-Size"],
          },
        },
        serve() {},
        options: { reservations },
      });
      opened.push(shop);
      await supertest(shop.url).get("/paid").set(headers).expect(402);
    }
  });
});
