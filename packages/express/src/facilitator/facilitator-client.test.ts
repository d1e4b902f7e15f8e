import { type Listening, listen } from "@coinslot/devnet";
import { FacilitatorError, type PaymentRequirements, plasma } from "@coinslot/protocol";
import express from "express";
import { afterEach, describe, expect, it } from "vitest";
import { createFacilitatorClient, facilitatorRouter } from "../index.ts";
import { createBuyer } from "../testing/buyer.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";

const opened: Listening[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

const requirements: PaymentRequirements = {
  scheme: "exact",
  network: plasma,
  amount: "1000",
  asset: "0xB8CE59FC3717ada4C02eaDF9682A9e934F625ebb",
  payTo: "0x00000000000000000000000000000000000beef1",
  maxTimeoutSeconds: 300,
  extra: { name: "USDT0", version: "1" },
};

interface Received {
  path: string;
  headers: Record<string, unknown>;
  body: unknown;
}

async function open() {
  const received: Received[] = [];
  const app = express();
  app.use(express.json());
  app.use((request, _response, next) => {
    received.push({ path: request.path, headers: request.headers, body: request.body });
    next();
  });
  app.use("/x402", facilitatorRouter(createPaperFacilitator()));
  const listening = await listen(app);
  opened.push(listening);
  return { url: `${listening.url}/x402`, received };
}

function sign(version: 1 | 2) {
  const buyer = createBuyer();
  return version === 2
    ? buyer.sign({ x402Version: 2, requirements, accepted: requirements })
    : buyer.sign({
        x402Version: 1,
        requirements,
        networkName: plasma,
        resourceUrl: "http://shop/",
      });
}

describe("the client of a hosted facilitator", () => {
  it("verifies and settles in version 2, with the caller's headers and key", async () => {
    const { url, received } = await open();
    let token = 0;
    const client = createFacilitatorClient({
      url: `${url}/`,
      headers: async () => {
        token += 1;
        return { Authorization: `Bearer ${token}` };
      },
    });
    const { payload } = await sign(2);
    expect(await client.verify(payload, requirements)).toMatchObject({ isValid: true });
    const settled = await client.settle(payload, requirements, { idempotencyKey: "seller-7" });
    expect(settled).toMatchObject({ success: true, network: plasma });
    expect(await client.getSupported()).toMatchObject({
      kinds: [{ x402Version: 1 }, { x402Version: 2 }],
    });
    expect(received.map(({ path }) => path)).toEqual([
      "/x402/verify",
      "/x402/settle",
      "/x402/supported",
    ]);
    expect(received.map(({ headers }) => headers.authorization)).toEqual([
      "Bearer 1",
      "Bearer 2",
      "Bearer 3",
    ]);
    expect(received[1]?.headers["idempotency-key"]).toBe("seller-7");
    expect(received[0]?.body).toMatchObject({ x402Version: 2, paymentRequirements: requirements });
  });

  it("writes requirements in the form of version 1 beside a payment of version 1", async () => {
    const { url, received } = await open();
    const client = createFacilitatorClient({ url });
    const { payload } = await sign(1);
    const resource = { url: "http://shop/paid", description: "Weather", mimeType: "text/plain" };
    expect(await client.verify(payload, requirements, { resource })).toMatchObject({
      isValid: true,
    });
    expect(received[0]?.body).toMatchObject({
      x402Version: 1,
      paymentRequirements: {
        maxAmountRequired: "1000",
        network: plasma,
        resource: "http://shop/paid",
        description: "Weather",
        mimeType: "text/plain",
      },
    });
  });

  it("reads a refusal as an answer, also with status 400", async () => {
    const refusal = express().use((_request, response) => {
      response.status(400).json({ isValid: false, invalidReason: "invalid_payload" });
    });
    const listening = await listen(refusal);
    opened.push(listening);
    const client = createFacilitatorClient({ url: listening.url });
    const { payload } = await sign(2);
    expect(await client.verify(payload, requirements)).toEqual({
      isValid: false,
      invalidReason: "invalid_payload",
    });
  });

  it("throws for an unreachable server, without its address", async () => {
    const client = createFacilitatorClient({ url: "http://127.0.0.1:1/secret-path" });
    const { payload } = await sign(2);
    for (const ask of [client.verify, client.settle]) {
      const error: unknown = await ask(payload, requirements).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(FacilitatorError);
      expect(error).toMatchObject({
        kind: "unavailable",
        message: expect.not.stringContaining("secret-path"),
      });
    }
  });

  it("sends no request for a malformed payment", async () => {
    const { url, received } = await open();
    const client = createFacilitatorClient({ url });
    const nothing = { x402Version: 2, payload: {} };
    expect(await client.verify(nothing, requirements)).toMatchObject({ isValid: false });
    await expect(client.settle(nothing, requirements)).rejects.toThrow(FacilitatorError);
    expect(received).toEqual([]);
  });

  it("sends the callback URL for payments only", async () => {
    const { url, received } = await open();
    const client = createFacilitatorClient({ url, eventCallback: "https://shop.example/events" });
    const { payload } = await sign(2);
    await client.verify(payload, requirements);
    await client.settle(payload, requirements);
    await client.getSupported();
    expect(received.map(({ headers }) => headers["x-event-callback"])).toEqual([
      "https://shop.example/events",
      "https://shop.example/events",
      undefined,
    ]);
    expect(() => createFacilitatorClient({ url, eventCallback: "events" })).toThrow(TypeError);
  });

  it.each(["", "facilitator.example", "ftp://facilitator.example"])(
    "refuses a url like %j",
    (url) => {
      expect(() => createFacilitatorClient({ url })).toThrow(TypeError);
    },
  );
});
