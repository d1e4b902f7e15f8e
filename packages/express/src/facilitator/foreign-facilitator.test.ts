import { type Listening, listen } from "@coinslot/devnet";
import type { Facilitator } from "@coinslot/protocol";
import express from "express";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import { createFacilitatorClient, facilitatorRouter, paymentMiddleware } from "../index.ts";
import { createBuyer } from "../testing/buyer.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { option } from "../testing/shop.ts";

const opened: Listening[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

async function open(app: Parameters<typeof listen>[0]): Promise<Listening> {
  const listening = await listen(app);
  opened.push(listening);
  return listening;
}

const network = "eip155:84532";
const legacyName = "base-sepolia";
const asset = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
const price = { amount: "1000", asset, extra: { name: "USDC", version: "2" } } as const;

/** The verify and settle requests to one facilitator. */
interface Asked {
  paymentPayload: unknown;
  paymentRequirements: unknown;
}

/** A facilitator that lists version 1 under these names, and records its requests. */
function createForeign(names: readonly string[]) {
  const paper = createPaperFacilitator();
  const asked: Asked[] = [];
  const facilitator: Facilitator = {
    getSupported: () => ({
      kinds: names.map((name) => ({ x402Version: 1, scheme: "exact", network: name })),
    }),
    verify(paymentPayload, paymentRequirements) {
      asked.push({ paymentPayload, paymentRequirements });
      return paper.verify(paymentPayload, paymentRequirements);
    },
    settle(paymentPayload, paymentRequirements, options) {
      asked.push({ paymentPayload, paymentRequirements });
      return paper.settle(paymentPayload, paymentRequirements, options);
    },
  };
  return { facilitator, asked };
}

async function openSeller(facilitator: Facilitator, legacyNetworkNames: boolean) {
  const accepts = option({ network, price });
  const routes = {
    "GET /paid": { accepts, description: "Weather", mimeType: "text/plain" },
  } as const;
  const gate = paymentMiddleware(routes, facilitator, { legacyNetworkNames });
  await gate.ready();
  const app = express().use(gate);
  app.get("/paid", (_request, response) => void response.send("content"));
  return open(app);
}

async function buy(seller: Listening) {
  const { payload, headers } = await createBuyer().payFor(`${seller.url}/paid`, { version: 1 });
  return { payload, answer: await supertest(seller.url).get("/paid").set(headers) };
}

/** Requirements of version 1, as a facilitator of another implementation reads them. */
function writtenFor(seller: Listening, name: string): object {
  return {
    scheme: "exact",
    network: name,
    maxAmountRequired: "1000",
    resource: `${seller.url}/paid`,
    description: "Weather",
    mimeType: "text/plain",
    asset,
  };
}

describe("a payment of version 1", () => {
  it.each([
    ["the only name that it lists", [legacyName], true, legacyName],
    ["the name that it lists, where the buyer used the number", [legacyName], false, legacyName],
    ["the number that it lists, where the buyer used the name", [network], true, network],
    ["the buyer's name, where it lists both", [network, legacyName], true, legacyName],
    ["the buyer's number, where it lists both", [network, legacyName], false, network],
  ] as const)(
    "reaches a remote facilitator whole, with its network by %s",
    async (_case, listed, legacyNetworkNames, name) => {
      const foreign = createForeign(listed);
      const received: unknown[] = [];
      const app = express().use(express.json(), (request, _response, next) => {
        if (request.method === "POST") received.push(request.body);
        next();
      });
      const hosted = await open(app.use(facilitatorRouter(foreign.facilitator)));
      const client = createFacilitatorClient({ url: hosted.url });
      const seller = await openSeller(client, legacyNetworkNames);

      const { payload, answer } = await buy(seller);

      expect(answer.status).toBe(200);
      const message = {
        x402Version: 1,
        paymentPayload: { ...payload, network: name },
        paymentRequirements: writtenFor(seller, name),
      };
      expect(received).toMatchObject([message, message]);
    },
  );

  it("reaches a facilitator behind our router unchanged", async () => {
    const foreign = createForeign([legacyName]);
    const hosted = await open(express().use(facilitatorRouter(foreign.facilitator)));
    const client = createFacilitatorClient({ url: hosted.url });
    const seller = await openSeller(client, true);

    const { payload, answer } = await buy(seller);

    expect(answer.status).toBe(200);
    const message = {
      paymentPayload: { ...payload, network: legacyName },
      paymentRequirements: writtenFor(seller, legacyName),
    };
    expect(foreign.asked).toMatchObject([message, message]);
  });

  it("reaches a remote facilitator through a second one unchanged", async () => {
    const foreign = createForeign([legacyName]);
    const inner = await open(express().use(facilitatorRouter(foreign.facilitator)));
    const between = createFacilitatorClient({ url: inner.url });
    const outer = await open(express().use(facilitatorRouter(between)));
    const seller = await openSeller(createFacilitatorClient({ url: outer.url }), true);

    const { answer } = await buy(seller);

    expect(answer.status).toBe(200);
    expect(foreign.asked).toHaveLength(2);
    for (const { paymentRequirements } of foreign.asked) {
      expect(paymentRequirements).toMatchObject(writtenFor(seller, legacyName));
    }
  });
});

describe("the client of a hosted facilitator", () => {
  it("lists the supported kinds by the remote's network names", async () => {
    const { facilitator } = createForeign([legacyName, "solana"]);
    const hosted = await open(express().use(facilitatorRouter(facilitator)));
    const listed = await createFacilitatorClient({ url: hosted.url }).getSupported();
    expect(listed).toMatchObject({ kinds: [{ network: legacyName }, { network: "solana" }] });
  });
});
