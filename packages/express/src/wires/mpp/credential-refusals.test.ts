import { decodeCredential, encodeCredential, headerName, plasmaUsdt0 } from "@coinslot/protocol";
import type { Request } from "express";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import { createBuyer } from "../../testing/buyer.ts";
import { challengesOf } from "../../testing/mpp-buyer.ts";
import { buyer, open, opened, priceOf, problem, secret } from "../../testing/mpp-scene.ts";
import { option } from "../../testing/shop.ts";

afterEach(async () => {
  await Promise.all(opened.splice(0).map((shop) => shop.close()));
});

describe("a credential", () => {
  it("is good for its own verb, path and query alone, and for HEAD where it is for GET", async () => {
    const shop = await open();
    const header = await buyer.payFor(`${shop.url}/paid?a=1`);
    const ask = () => supertest(shop.url);
    for (const request of [
      ask().get("/other?a=1"),
      ask().get("/paid?a=2"),
      ask().get("/paid"),
      ask().post("/paid?a=1"),
    ]) {
      const answer = await request.set("Authorization", header).expect(402);
      expect(answer.body).toMatchObject({ type: problem("invalid-challenge") });
    }
    await ask().head("/paid?a=1").set("Authorization", header).expect(200);
    expect(shop.runs()).toBe(1);
  });

  it("twice, or beside another payment, is refused before anything is reserved", async () => {
    const shop = await open();
    const header = await buyer.payFor(`${shop.url}/paid`);
    const x402 = await createBuyer().payFor(`${shop.url}/paid`);
    const beside = [
      { "Payment-Authorization": header },
      x402.headers,
      (await createBuyer().payFor(`${shop.url}/paid`, { version: 1 })).headers,
    ];
    for (const others of beside)
      await supertest(shop.url)
        .get("/paid")
        .set({ Authorization: header, ...others })
        .expect(400);
    expect(shop.runs()).toBe(0);
    await supertest(shop.url).get("/paid").set("Authorization", header).expect(200);
  });

  it("is refused with a member moved into another one, though their joined text is the same", async () => {
    const header = "Payment-Authorization";
    const mpp = { mode: true, realm: "127.0.0.1", secrets: [secret], header } as const;
    const shop = await open({ options: { mpp } });
    const good = await buyer.payFor(`${shop.url}/paid`);
    const credential = decodeCredential(good);
    const { header: moved, ...challenge } = credential.challenge;
    const altered = { ...credential, challenge: { ...challenge, digest: `|${moved}` } };
    const ask = () => supertest(shop.url).get("/paid");
    await ask().set(header, encodeCredential(altered)).expect(402);
    await ask().set(header, good).expect(200);
  });

  it("buys nothing dearer than its challenge, whatever the price depends on", async () => {
    const price = (request: Request) => ({
      ...priceOf(),
      amount: request.get("x-model") === "large" ? "1000000" : "1000",
    });
    const shop = await open({ routes: { "GET /paid": { accepts: option({ price }) } } });
    const header = await buyer.payFor(`${shop.url}/paid`);
    const answer = await supertest(shop.url)
      .get("/paid")
      .set({ Authorization: header, "x-model": "large" })
      .expect(402);
    expect(answer.body).toMatchObject({ type: problem("invalid-challenge") });
    expect(shop.facilitator.settled).toEqual([]);
    await supertest(shop.url).get("/paid").set("Authorization", header).expect(200);
    expect(shop.runs()).toBe(1);
  });

  it("a credential of a retired secret is taken, and of a removed one refused with a challenge that works", async () => {
    const first = await open();
    const header = await buyer.payFor(`${first.url}/paid`);
    const current = "another-secret-of-a-test-32-bytes";
    const mpp = { mode: true, realm: "127.0.0.1" } as const;
    const rotated = await open({ options: { mpp: { ...mpp, secrets: [current, secret] } } });
    await supertest(rotated.url).get("/paid").set("Authorization", header).expect(200);
    const removed = await open({ options: { mpp: { ...mpp, secrets: [current] } } });
    await supertest(removed.url).get("/paid").set("Authorization", header).expect(402);
    const fresh = await buyer.payFor(`${removed.url}/paid`);
    await supertest(removed.url).get("/paid").set("Authorization", fresh).expect(200);
  });

  it("is taken by each process of a rotation, where every secret proves before it makes", async () => {
    const next = "another-secret-of-a-test-32-bytes";
    const steps = [[secret], [secret, next], [next, secret], [next]] as const;
    const shops: Awaited<ReturnType<typeof open>>[] = [];
    for (const secrets of steps) {
      shops.push(await open({ options: { mpp: { mode: true, realm: "127.0.0.1", secrets } } }));
    }
    for (const [index, shop] of shops.entries()) {
      // One process is restarted after the other: its neighbour is a step behind, or ahead.
      for (const other of [shops[index - 1], shops[index + 1]]) {
        if (other === undefined) continue;
        const header = await buyer.payFor(`${shop.url}/paid`);
        await supertest(other.url).get("/paid").set("Authorization", header).expect(200);
      }
    }
  });

  it("a credential that was paid is refused by a process without its secret: no step of a rotation may be left out", async () => {
    const next = "another-secret-of-a-test-32-bytes";
    const [ahead, behind] = [
      await open({ options: { mpp: { mode: true, realm: "127.0.0.1", secrets: [next, secret] } } }),
      await open({ options: { mpp: { mode: true, realm: "127.0.0.1", secrets: [secret] } } }),
    ];
    const header = await buyer.payFor(`${ahead.url}/paid`);
    await supertest(ahead.url).get("/paid").set("Authorization", header).expect(200);
    await supertest(behind.url).get("/paid").set("Authorization", header).expect(402);
  });

  it("a credential of a seller with the same secret and another recipient is refused", async () => {
    const other = await open({
      routes: { "GET /paid": { accepts: option({ payTo: plasmaUsdt0.address }) } },
    });
    const header = await buyer.payFor(`${other.url}/paid`);
    const shop = await open();
    const answer = await supertest(shop.url).get("/paid").set("Authorization", header).expect(402);
    expect(answer.body).toMatchObject({ type: problem("invalid-challenge") });
    expect(shop.facilitator.settled).toEqual([]);
  });

  it("a credential of another process without a shared secret is refused, and charges nothing", async () => {
    const [one, two] = [
      await open({ options: { mpp: true } }),
      await open({ options: { mpp: true } }),
    ];
    const header = await buyer.payFor(`${one.url}/paid`);
    const answer = await supertest(two.url).get("/paid").set("Authorization", header).expect(402);
    expect(answer.body).toMatchObject({ type: problem("invalid-challenge") });
    await supertest(one.url).get("/paid").set("Authorization", header).expect(200);
    expect([one, two].map(({ facilitator }) => facilitator.settled.length)).toEqual([1, 0]);
  });

  it("a credential that comes when too little of its time is left is expired, with a fresh challenge", async () => {
    const mpp = { mode: true, secrets: [secret] } as const;
    const header = await buyer.payFor(`${(await open()).url}/paid`);
    for (const seconds of [270, 400]) {
      const now = () => Date.now() + seconds * 1000;
      const shop = await open({ options: { mpp, now } });
      const answer = await supertest(shop.url)
        .get("/paid")
        .set("Authorization", header)
        .expect(402);
      expect(answer.body).toMatchObject({ type: problem("payment-expired") });
      expect(challengesOf(answer.get(headerName.authenticate))).toHaveLength(1);
      expect(shop.runs()).toBe(0);
    }
  });

  it("a credential that the settlement refuses before it sends anything is refused, with a fresh challenge", async () => {
    const shop = await open();
    shop.facilitator.onSettle = async () => ({
      success: false,
      errorReason: "invalid_exact_evm_insufficient_balance",
      transaction: "",
      network: "eip155:9745",
    });
    const header = await buyer.payFor(`${shop.url}/paid`);
    const answer = await supertest(shop.url).get("/paid").set("Authorization", header).expect(402);
    expect(challengesOf(answer.get(headerName.authenticate))).toHaveLength(1);
  });
});
