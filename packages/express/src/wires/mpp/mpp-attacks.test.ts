import { once } from "node:events";
import { createServer, request as sendRequest } from "node:http";
import {
  type Authorization,
  type Challenge,
  challengeNonce,
  decodeChargeRequest,
  encodeCredential,
  headerName,
  plasmaUsdt0,
} from "@coinslot/protocol";
import type { Express, RequestHandler } from "express";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import { challengesOf, createMppBuyer, fetchChallenges } from "../../testing/mpp-buyer.ts";
import { openShop, option, type Shop } from "../../testing/shop.ts";

const opened: Pick<Shop, "close">[] = [];
const mpp = { mode: true, secrets: ["a-secret-of-a-test-with-32-bytes"] } as const;
const buyer = createMppBuyer(plasmaUsdt0);
const problem = (name: string) => `https://paymentauth.org/problems/${name}`;

afterEach(async () => {
  await Promise.all(opened.splice(0).map((each) => each.close()));
});

async function open(
  config: { handler?: RequestHandler; timeoutSeconds?: number; maxHeaderSize?: number } = {},
) {
  const { handler, timeoutSeconds = 10 } = config;
  let runs = 0;
  let application: Express | undefined;
  const shop = await openShop({
    routes: {
      "GET /paid": { accepts: option(), handlerTimeoutSeconds: timeoutSeconds },
      "POST /paid": { accepts: option() },
    },
    before: (app) => {
      application = app;
    },
    serve(app) {
      app.all("/paid", (request, response, next) => {
        runs += 1;
        if (handler === undefined) response.send("content");
        else return handler(request, response, next);
      });
    },
    options: { mpp },
  });
  opened.push(shop);
  return { ...shop, application, runs: () => runs };
}

async function challengeOf(url: string): Promise<Challenge> {
  const [challenge] = await fetchChallenges(url);
  if (challenge === undefined) throw new Error("No challenge");
  return challenge;
}

describe("a credential whose signature is good", () => {
  it.each<[string, (challenge: Challenge) => Partial<Authorization>]>([
    ["a nonce of its own", () => ({ nonce: `0x${"1".repeat(64)}` })],
    [
      "the nonce of another challenge",
      (challenge) => ({ nonce: challengeNonce({ ...challenge, id: "another" }) }),
    ],
    [
      "the nonce of its realm and id, in this order",
      ({ id, realm, ...rest }) => ({ nonce: challengeNonce({ ...rest, id: realm, realm: id }) }),
    ],
    ["a lower value", () => ({ value: 999n })],
    ["a higher value", () => ({ value: 1001n })],
    ["another recipient", () => ({ to: plasmaUsdt0.address })],
    ["an end after its challenge's", () => ({ validBefore: 4_070_908_800n })],
  ])(
    "a well-signed credential for %s is refused with a fresh challenge, and runs nothing",
    async (_case, changesOf) => {
      const shop = await open();
      const challenge = await challengeOf(`${shop.url}/paid`);
      const credential = await buyer.answer(challenge, changesOf(challenge));
      const answer = await supertest(shop.url)
        .get("/paid")
        .set("Authorization", encodeCredential(credential))
        .expect(402);
      expect(answer.body).toMatchObject({ type: problem("verification-failed") });
      expect(challengesOf(answer.get(headerName.authenticate))).toHaveLength(1);
      expect([shop.runs(), shop.facilitator.settled]).toEqual([0, []]);
    },
  );

  it.each<[string, (charge: ReturnType<typeof decodeChargeRequest>) => object]>([
    ["another token", (charge) => ({ ...charge, currency: `0x${"1".repeat(40)}` })],
    [
      "another chain",
      (charge) => ({ ...charge, methodDetails: { ...charge.methodDetails, chainId: 8453 } }),
    ],
    [
      "its members in another order",
      (charge) => Object.fromEntries(Object.entries(charge).reverse()),
    ],
    ["a member more", (charge) => ({ ...charge, note: "mine" })],
  ])(
    "a well-signed credential for a request with %s answers no challenge of ours",
    async (_case, change) => {
      const shop = await open();
      const challenge = await challengeOf(`${shop.url}/paid`);
      const changed = JSON.stringify(change(decodeChargeRequest(challenge.request)));
      const request = Buffer.from(changed).toString("base64url");
      const credential = await buyer.answer({ ...challenge, request });
      const answer = await supertest(shop.url)
        .get("/paid")
        .set("Authorization", encodeCredential(credential))
        .expect(402);
      expect(answer.body).toMatchObject({ type: problem("invalid-challenge") });
      expect(shop.runs()).toBe(0);
    },
  );
});

describe("the form of a credential", () => {
  it("does not matter: padded, in the standard alphabet, with white space, in any case", async () => {
    const shop = await open();
    const credential = await buyer.answer(await challengeOf(`${shop.url}/paid`));
    const canonical = encodeCredential(credential);
    const json = Buffer.from(canonical.slice("Payment ".length), "base64url");
    const padded = json.toString("base64").replaceAll("+", "-").replaceAll("/", "_");
    const standard = Buffer.concat([json, Buffer.from(" ")]).toString("base64");
    const statuses: number[] = [];
    for (const header of [`payment  ${padded}`, `PAYMENT ${standard}`, canonical]) {
      const answer = await supertest(shop.url).get("/paid").set("Authorization", header);
      statuses.push(answer.status);
    }
    expect(statuses).toEqual([200, 402, 402]);
    expect(shop.facilitator.settled).toHaveLength(1);
  });

  it("a credential of two lines of Authorization is refused, and nothing is reserved", async () => {
    const shop = await open();
    const header = await buyer.payFor(`${shop.url}/paid`);
    for (const second of [header, "Bearer mine"]) {
      const sent = sendRequest(`${shop.url}/paid`, {
        headers: { Authorization: [header, second] },
      });
      sent.end();
      const [answer] = await once(sent, "response");
      answer.resume();
      expect(answer.statusCode).toBe(400);
    }
    expect(shop.facilitator.verifications).toBe(0);
    await supertest(shop.url).get("/paid").set("Authorization", header).expect(200);
  });

  it.each([
    ["a megabyte of letters", "A".repeat(2 ** 20)],
    ["a megabyte of lists", nested()],
  ])(
    "a credential of %s is malformed where a server takes such headers, and none of it comes back",
    async (_case, text) => {
      const shop = await open();
      const server = createServer({ maxHeaderSize: 4 * 2 ** 20 }, shop.application).listen(0);
      await once(server, "listening");
      opened.push({ close: async () => void server.close() });
      const address = server.address();
      if (typeof address !== "object" || address === null) throw new Error("No port");
      const { port } = address;
      const sent = sendRequest({
        port,
        path: "/paid",
        headers: { Authorization: `Payment ${text}` },
      });
      sent.end();
      const [answer] = await once(sent, "response");
      let body = "";
      for await (const chunk of answer.setEncoding("utf8")) body += chunk;
      expect(answer.statusCode).toBe(402);
      expect(JSON.parse(body)).toMatchObject({ type: problem("malformed-credential") });
      expect(body.length).toBeLessThan(4096);
    },
  );

  function nested(): string {
    return Buffer.from("[".repeat(700_000)).toString("base64url");
  }
});

describe("a sale by MPP", () => {
  it.each([
    "evm/charge",
    "tempo/*;q=1, */*;q=0.1",
    "evm/charge;q=0",
    "*/*;q=0",
    "tempo/charge",
    ";;q=",
  ])("is offered whatever Accept-Payment says, since there is one method: %s", async (header) => {
    const shop = await open();
    const answer = await supertest(shop.url).get("/paid").set("Accept-Payment", header);
    expect([answer.status, challengesOf(answer.get(headerName.authenticate)).length]).toEqual([
      402, 1,
    ]);
  });

  it("is not charged where its handler takes too long", async () => {
    const shop = await open({ handler: () => undefined, timeoutSeconds: 0.05 });
    const header = await buyer.payFor(`${shop.url}/paid`);
    const answer = await supertest(shop.url).get("/paid").set("Authorization", header).expect(504);
    expect(answer.get(headerName.authenticate)).toBeUndefined();
    expect(answer.get(headerName.paymentReceipt)).toBeUndefined();
    expect(shop.facilitator.settled).toEqual([]);
  });

  it("is not charged where its buyer leaves the running handler, and the credential stays good", async () => {
    let begin = (): void => undefined;
    let leave = (): void => undefined;
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const left = new Promise<void>((resolve) => {
      leave = resolve;
    });
    let isFirst = true;
    const shop = await open({
      handler(_request, response) {
        if (!isFirst) return void response.send("content");
        isFirst = false;
        response.once("close", leave);
        begin();
      },
    });
    const headers = { Authorization: await buyer.payFor(`${shop.url}/paid`) };
    const sent = sendRequest(`${shop.url}/paid`, { headers });
    sent.on("error", () => undefined);
    sent.end();
    await begun;
    sent.destroy();
    await left;
    expect(shop.facilitator.settled).toEqual([]);
    await expect
      .poll(async () => (await fetch(`${shop.url}/paid`, { headers })).status, { interval: 5 })
      .toBe(200);
    expect(shop.facilitator.settled).toHaveLength(1);
  });

  it("lets no shared cache keep an answer, whatever its handler says", async () => {
    const shop = await open({
      handler: (_request, response) =>
        void response
          .set("Cache-Control", "public, max-age=60, s-maxage=600")
          .set("CDN-Cache-Control", "max-age=600")
          .send("content"),
    });
    const header = await buyer.payFor(`${shop.url}/paid`);
    const ask = (headers: Record<string, string>) => supertest(shop.url).get("/paid").set(headers);
    const sold = await ask({ Authorization: header }).expect(200);
    expect(sold.get("Cache-Control")).toBe("private, max-age=60");
    expect(sold.get("CDN-Cache-Control")).toBeUndefined();
    const unsold = [
      await ask({}).expect(402),
      await ask({ Authorization: header }).expect(402),
      await ask({ Authorization: "Payment garbage" }).expect(402),
      await ask({ Authorization: header, "Payment-Authorization": header }).expect(400),
    ];
    for (const answer of unsold) expect(answer.get("Cache-Control")).toBe("no-store");
  });
});
