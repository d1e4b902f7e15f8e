import { decodeChargeRequest, headerName, plasma } from "@coinslot/protocol";
import { Challenge as MppxChallenge } from "mppx";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import { challengesOf, fetchChallenges } from "../../testing/mpp-buyer.ts";
import { open, opened, priceOf, problem, secret } from "../../testing/mpp-scene.ts";
import { createPaperFacilitator } from "../../testing/paper-facilitator.ts";
import { option } from "../../testing/shop.ts";

afterEach(async () => {
  await Promise.all(opened.splice(0).map((shop) => shop.close()));
});

describe("a challenge", () => {
  it("stands beside both offers of x402, and is never the same twice", async () => {
    const shop = await open();
    const answers = await Promise.all(
      Array.from({ length: 500 }, () => supertest(shop.url).get("/paid").expect(402)),
    );
    const ids = answers.map((answer) => {
      expect(answer.get(headerName.paymentRequired)).toBeDefined();
      expect(answer.get("Cache-Control")).toBe("no-store");
      expect(answer.body).toMatchObject({
        x402Version: 1,
        type: problem("payment-required"),
        status: 402,
      });
      const [challenge] = challengesOf(answer.get(headerName.authenticate));
      return challenge?.id;
    });
    expect(new Set(ids).size).toBe(500);
  });

  it("stands before the challenges of the application", async () => {
    const shop = await open({
      before: (app) =>
        void app.use((_request, response, next) => {
          response.setHeader(headerName.authenticate, 'Bearer realm="a"');
          next();
        }),
    });
    const answer = await fetch(`${shop.url}/paid`);
    expect(answer.headers.get(headerName.authenticate)).toMatch(/^Payment .*, Bearer realm="a"$/);
  });

  it("is a problem for who accepts one", async () => {
    const shop = await open();
    const accept = "application/problem+json, application/json";
    const answer = await supertest(shop.url).get("/paid").set("Accept", accept).expect(402);
    expect(answer.get("Content-Type")).toBe("application/problem+json");
  });

  it.each(['a"b\\c', "xn--nxasmq6b", "[::1]:80", "a\u00e9", "two hosts", "999.999.999.999"])(
    "is legal for the host %j",
    async (host) => {
      const shop = await open();
      const answer = await supertest(shop.url)
        .get("/paid")
        .set("Host", Buffer.from(host, "utf8").toString("latin1"))
        .expect(402);
      expect(challengesOf(answer.get(headerName.authenticate))).toHaveLength(1);
    },
  );

  it.each([
    'a "quoted" \\ word',
    'x", realm="y',
    "a\r\nSet-Cookie: a=b",
    "Tschüß 🎟",
    "x".repeat(500),
  ])("is legal beside the description %j", async (description) => {
    const shop = await open({ routes: { "GET /paid": { accepts: option(), description } } });
    const answer = await supertest(shop.url).get("/paid").expect(402);
    expect(answer.get("Set-Cookie")).toBeUndefined();
    const [challenge] = challengesOf(answer.get(headerName.authenticate));
    expect(challenge?.realm).toBe("127.0.0.1");
    expect([undefined, description]).toContain(challenge?.description);
  });

  it("is left out where a client of Node could not read it, the last one first", async () => {
    const price = priceOf();
    const extra = { ...price.extra, note: "x".repeat(600) };
    const accepts = Array.from({ length: 8 }, (_, index) =>
      option({ price: { ...price, amount: `${index + 1}`, extra } }),
    );
    const shop = await open({ routes: { "GET /paid": { accepts } } });
    const challenges = await fetchChallenges(`${shop.url}/paid?q=${"y".repeat(1900)}`);
    const amounts = challenges.map(({ request }) => decodeChargeRequest(request).amount);
    expect(["1", "2", "3", "4", "5", "6", "7"].join()).toContain(amounts.join());
    expect(amounts[0]).toBe("1");
  });

  it("has an id that the reference's server would have made", async () => {
    for (const header of [undefined, "Payment-Authorization"] as const) {
      const shop = await open({ options: { mpp: { mode: true, secrets: [secret], header } } });
      const answer = await fetch(`${shop.url}/paid`);
      const line = answer.headers.get(headerName.authenticate) ?? "";
      const theirs = MppxChallenge.deserialize(line);
      expect(MppxChallenge.verify(theirs, { secretKey: secret })).toBe(true);
    }
  });

  it("is made with a warning where neither a ledger nor a setting has its secret", async () => {
    const usdc = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
    const price = {
      amount: "1000",
      asset: usdc,
      extra: { name: "USD Coin", version: "2" },
    } as const;
    const network = "eip155:8453";
    const known = { "GET /paid": { accepts: option({ network, price }) } };
    const later = { "GET /paid": { accepts: option({ network, price: () => price }) } };
    const unknown = { "GET /paid": { accepts: option() } };
    for (const [routes, mpp, warnings] of [
      [known, "auto", 1],
      [later, "auto", 1],
      [unknown, "auto", 0],
      [unknown, true, 1],
      [known, false, 0],
      [known, { secrets: [secret] }, 0],
    ] as const) {
      const errors: unknown[] = [];
      const facilitator = createPaperFacilitator({ networks: [network, plasma] });
      const onError = (error: unknown) => void errors.push(error);
      await open({ routes, facilitator, options: { mpp, onError } });
      expect(errors.map(String).filter((text) => text.includes("mpp.secrets"))).toHaveLength(
        warnings,
      );
    }
  });

  it("is refused at the start where the setting names a ledger's secret that there is none of", async () => {
    const secrets = ["ledger", secret] as const;
    const failing = open({ options: { mpp: { mode: true, secrets } } });
    await expect(failing).rejects.toThrow(/options\.mpp\.secrets names "ledger"/);
  });

  it("is for known tokens alone by default, and for none where it is off", async () => {
    for (const options of [{}, { mpp: false }]) {
      const shop = await open({ options });
      const answer = await supertest(shop.url).get("/paid").expect(402);
      expect(answer.get(headerName.authenticate)).toBeUndefined();
      expect(answer.body).not.toHaveProperty("type");
    }
  });
});
