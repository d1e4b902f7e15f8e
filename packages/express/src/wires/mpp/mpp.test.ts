import {
  type Credential,
  decodeChargeRequest,
  decodePaymentReceipt,
  encodeChargeRequest,
  encodeCredential,
  encodeOpaque,
  headerName,
  plasma,
  plasmaUsdt0,
  readAuthorizationPayload,
  readFacilitatorArguments,
} from "@coinslot/protocol";
import type { Request } from "express";
import { Challenge as MppxChallenge } from "mppx";
import { evm, Mppx } from "mppx/client";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import { createBuyer, fetchOffer, toHeaders } from "../../testing/buyer.ts";
import { challengesOf, createMppBuyer, fetchChallenges } from "../../testing/mpp-buyer.ts";
import { createPaperFacilitator } from "../../testing/paper-facilitator.ts";
import { openShop, option, type Shop } from "../../testing/shop.ts";

const opened: Shop[] = [];
const secret = "a-secret-of-a-test-with-32-bytes";

afterEach(async () => {
  await Promise.all(opened.splice(0).map((shop) => shop.close()));
});

type Change = Partial<Parameters<typeof openShop>[0]>;

async function open(change: Change = {}): Promise<Shop & { runs: () => number }> {
  let runs = 0;
  const shop = await openShop({
    routes: {
      "GET /paid": { accepts: option() },
      "GET /other": { accepts: option() },
      "POST /paid": { accepts: option() },
      "GET /upfront": { accepts: option(), paymentFlow: "upfront" },
    },
    serve(app) {
      app.use((request, response) => {
        runs += 1;
        if (request.query.fail !== undefined) response.status(500);
        if (request.query.throw !== undefined) throw new Error("A fault of the handler");
        response.setHeader(headerName.paymentReceipt, "forged");
        response.json({ authorization: request.headers.authorization ?? null });
      });
    },
    options: { mpp: { mode: true, secrets: [secret] }, ...change.options },
    ...change,
  });
  opened.push(shop);
  return { ...shop, runs: () => runs };
}

const buyer = createMppBuyer(plasmaUsdt0);
const problem = (name: string) => `https://paymentauth.org/problems/${name}`;

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

  it("is for known tokens alone by default, and for none where it is off", async () => {
    for (const options of [{}, { mpp: false }]) {
      const shop = await open({ options });
      const answer = await supertest(shop.url).get("/paid").expect(402);
      expect(answer.get(headerName.authenticate)).toBeUndefined();
      expect(answer.body).not.toHaveProperty("type");
    }
  });
});

describe("a credential", () => {
  it("buys, on both flows, and its handler sees none of it", async () => {
    const shop = await open();
    for (const path of ["/paid", "/upfront"]) {
      const credential = await buyer.payFor(`${shop.url}${path}`);
      const answer = await supertest(shop.url)
        .get(path)
        .set("Authorization", credential)
        .expect(200, { authorization: null });
      const receipt = decodePaymentReceipt(answer.get(headerName.paymentReceipt) ?? "");
      expect(receipt).toMatchObject({ status: "success", method: "evm", chainId: 9745 });
      expect(answer.get("Cache-Control")).toMatch(/^private/);
      expect(answer.get(headerName.paymentResponse)).toBeUndefined();
    }
    expect(shop.facilitator.settled).toHaveLength(2);
  });

  it("is one message on its way, whose shape and signature no layer reads twice", async () => {
    const facilitator = createPaperFacilitator();
    const areSame: boolean[] = [];
    const shop = await open({
      facilitator: {
        ...facilitator,
        verify(payload, requirements) {
          const read = readFacilitatorArguments(payload, requirements);
          areSame.push(read.ok && read.request.paymentPayload === payload);
          return facilitator.verify(payload, requirements);
        },
      },
    });
    const credential = await buyer.payFor(`${shop.url}/paid`);
    await supertest(shop.url).get("/paid").set("Authorization", credential).expect(200);
    expect(areSame).toEqual([true]);
  });

  it("buys in Payment-Authorization beside the application's own Authorization", async () => {
    const shop = await open({
      options: { mpp: { mode: true, secrets: [secret], header: "Payment-Authorization" } },
    });
    const [challenge] = await fetchChallenges(`${shop.url}/paid`);
    expect(challenge?.header).toBe("Payment-Authorization");
    const credential = await buyer.payFor(`${shop.url}/paid`);
    await supertest(shop.url)
      .get("/paid")
      .set("Authorization", "Bearer mine")
      .set("Payment-Authorization", credential)
      .expect(200, { authorization: "Bearer mine" });
  });

  it.each<[string, (credential: Credential) => unknown, string]>([
    ["another id", ({ challenge }) => (challenge.id = "x".repeat(43)), "invalid-challenge"],
    ["another realm", ({ challenge }) => (challenge.realm = "other"), "invalid-challenge"],
    [
      "a later end",
      ({ challenge }) => (challenge.expires = "2099-01-01T00:00:00Z"),
      "invalid-challenge",
    ],
    ["a padded request", ({ challenge }) => (challenge.request += "="), "invalid-challenge"],
    [
      "a lower amount in its request",
      ({ challenge }) => {
        const charge = decodeChargeRequest(challenge.request);
        challenge.request = encodeChargeRequest({ ...charge, amount: "1" });
      },
      "invalid-challenge",
    ],
    [
      "another recipient in its request",
      ({ challenge }) => {
        const charge = decodeChargeRequest(challenge.request);
        challenge.request = encodeChargeRequest({ ...charge, recipient: plasmaUsdt0.address });
      },
      "invalid-challenge",
    ],
    ["no opaque", ({ challenge }) => delete challenge.opaque, "invalid-challenge"],
    [
      "an opaque of another request",
      ({ challenge }) => (challenge.opaque = encodeOpaque({ for: "x", salt: "y" })),
      "invalid-challenge",
    ],
    [
      "another nonce",
      ({ payload }) => (payload.nonce = `0x${"1".repeat(64)}`),
      "verification-failed",
    ],
    ["a lower value", ({ payload }) => (payload.value = "999"), "verification-failed"],
    [
      "another recipient",
      ({ payload }) => (payload.to = plasmaUsdt0.address),
      "verification-failed",
    ],
    [
      "a later validBefore",
      ({ payload }) => (payload.validBefore = "4070908800"),
      "verification-failed",
    ],
    ["another type", ({ payload }) => (payload.type = "hash"), "verification-failed"],
    [
      "the source of another payer",
      (credential) => (credential.source = `did:pkh:eip155:9745:${plasmaUsdt0.address}`),
      "verification-failed",
    ],
    [
      "another payer",
      (credential) => {
        delete credential.source;
        credential.payload.from = plasmaUsdt0.address;
      },
      "verification-failed",
    ],
  ])("with %s is refused, with a fresh challenge", async (_what, change, name) => {
    const shop = await open();
    const [challenge] = await fetchChallenges(`${shop.url}/paid`);
    if (challenge === undefined) throw new Error("No challenge");
    const credential = await buyer.answer(challenge);
    change(credential);
    const header = encodeCredential(credential);
    const answer = await supertest(shop.url).get("/paid").set("Authorization", header).expect(402);
    expect(answer.body).toMatchObject({ type: problem(name), status: 402 });
    expect(answer.get(headerName.paymentReceipt)).toBeUndefined();
    const [fresh] = challengesOf(answer.get(headerName.authenticate));
    expect(fresh?.id).toMatch(/^[\w-]{43}$/);
    expect(fresh?.id).not.toBe(challenge.id);
    expect(shop.runs()).toBe(0);
  });

  it.each([
    ["no payload", `Payment ${encodeOpaque({ challenge: "x" })}`],
    ["garbage", "Payment %%%"],
    ["nothing", "Payment"],
    ["null", `Payment ${Buffer.from("null").toString("base64url")}`],
    ["1 MB", `Payment ${"A".repeat(15_000)}`],
    ["a list", `Payment ${Buffer.from("[]").toString("base64url")}`],
    ["deep lists", `Payment ${Buffer.from("[".repeat(10_000)).toString("base64url")}`],
    ["a prototype", `Payment ${Buffer.from('{"__proto__":{"a":1}}').toString("base64url")}`],
    ["half a character", `Payment ${Buffer.from('{"challenge":"\\ud800"}').toString("base64url")}`],
  ])("of %s is malformed, with a fresh challenge", async (_what, header) => {
    const shop = await open();
    const answer = await supertest(shop.url).get("/paid").set("Authorization", header).expect(402);
    expect(answer.body).toMatchObject({ type: problem("malformed-credential") });
    expect(challengesOf(answer.get(headerName.authenticate))).toHaveLength(1);
  });

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

  it("is one payment, shown ten times at once", async () => {
    const shop = await open();
    const header = await buyer.payFor(`${shop.url}/paid`);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () =>
        supertest(shop.url).get("/paid").set("Authorization", header),
      ),
    );
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.every((status) => [200, 402, 409].includes(status))).toBe(true);
    expect(shop.runs()).toBe(1);
    expect(shop.facilitator.settled).toHaveLength(1);
  });

  it("and the same authorization by x402 are one payment, whichever comes first", async () => {
    const shop = await open();
    for (const first of ["mpp", "x402"]) {
      const [challenge] = await fetchChallenges(`${shop.url}/paid`);
      if (challenge === undefined) throw new Error("No challenge");
      const credential = await buyer.answer(challenge);
      const { signed } = await asX402(`${shop.url}/paid`, credential);
      const byMpp = { Authorization: encodeCredential(credential) };
      const order = first === "mpp" ? [byMpp, signed] : [signed, byMpp];
      const statuses: number[] = [];
      for (const headers of order)
        statuses.push((await supertest(shop.url).get("/paid").set(headers)).status);
      expect(statuses).toEqual([200, 402]);
    }
    expect(shop.facilitator.settled).toHaveLength(2);
    expect(shop.runs()).toBe(2);
  });

  it("whose answer was lost is not taken up by a stranger with its public calldata", async () => {
    const shop = await open();
    shop.facilitator.onSettle = async (settle) => {
      settle();
      throw new Error("The connection was lost");
    };
    const [challenge] = await fetchChallenges(`${shop.url}/paid`);
    if (challenge === undefined) throw new Error("No challenge");
    const credential = await buyer.answer(challenge);
    const byMpp = { Authorization: encodeCredential(credential) };
    const pending = await supertest(shop.url).get("/paid").set(byMpp).expect(503);
    expect(pending.get(headerName.authenticate)).toBeUndefined();
    shop.facilitator.onSettle = undefined;
    const { signed } = await asX402(`${shop.url}/paid`, credential);
    await supertest(shop.url).get("/paid").set(signed).expect(409);
    await supertest(shop.url).get("/paid").set(byMpp).expect(200);
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

  it.each(["fail", "throw"])(
    "is not charged, and has no receipt, where its handler fails: %s",
    async (fault) => {
      const shop = await open();
      const path = `/paid?${fault}`;
      const header = await buyer.payFor(`${shop.url}${path}`);
      const answer = await supertest(shop.url).get(path).set("Authorization", header);
      expect(answer.status).toBe(500);
      expect(answer.get(headerName.paymentReceipt)).toBeUndefined();
      expect(answer.get(headerName.authenticate)).toBeUndefined();
      expect(shop.facilitator.settled).toEqual([]);
    },
  );

  it("has no receipt where an upfront handler fails after the payment", async () => {
    const shop = await open();
    const header = await buyer.payFor(`${shop.url}/upfront?fail`);
    const answer = await supertest(shop.url).get("/upfront?fail").set("Authorization", header);
    expect(answer.status).toBe(500);
    expect(answer.get(headerName.paymentReceipt)).toBeUndefined();
    expect(shop.facilitator.settled).toHaveLength(1);
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

  it("of a retired secret is taken, and of a removed one refused with a challenge that works", async () => {
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

  it("of a seller with the same secret and another recipient is refused", async () => {
    const other = await open({
      routes: { "GET /paid": { accepts: option({ payTo: plasmaUsdt0.address }) } },
    });
    const header = await buyer.payFor(`${other.url}/paid`);
    const shop = await open();
    const answer = await supertest(shop.url).get("/paid").set("Authorization", header).expect(402);
    expect(answer.body).toMatchObject({ type: problem("invalid-challenge") });
    expect(shop.facilitator.settled).toEqual([]);
  });

  it("of another process without a shared secret is refused, and charges nothing", async () => {
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

  it("with its nonce in capitals is the same payment", async () => {
    const shop = await open();
    const [challenge] = await fetchChallenges(`${shop.url}/paid`);
    if (challenge === undefined) throw new Error("No challenge");
    const credential = await buyer.answer(challenge);
    const { payload } = credential;
    const nonce = `0x${String(payload.nonce).slice(2).toUpperCase()}`;
    const capitals = encodeCredential({ ...credential, payload: { ...payload, nonce } });
    await supertest(shop.url).get("/paid").set("Authorization", capitals).expect(200);
    const header = encodeCredential(credential);
    await supertest(shop.url).get("/paid").set("Authorization", header).expect(402);
    expect(shop.facilitator.settled).toHaveLength(1);
  });

  it("that comes when too little of its time is left is expired, with a fresh challenge", async () => {
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

  it.each([
    "invalid_exact_evm_transaction_failed",
    "transaction_failed",
    "confirmation_timed_out",
    "duplicate_settlement",
    "words of another facilitator",
    // Another sender has executed it, and no node shows the transfer yet.
    "invalid_exact_evm_nonce_already_used",
  ])("that a facilitator may have sent is not asked for again: %s", async (errorReason) => {
    const shop = await open();
    shop.facilitator.onSettle = async () => ({
      success: false,
      errorReason,
      transaction: "",
      network: "eip155:9745",
    });
    const header = await buyer.payFor(`${shop.url}/paid`);
    const answer = await supertest(shop.url).get("/paid").set("Authorization", header);
    expect([409, 503]).toContain(answer.status);
    expect(answer.get(headerName.authenticate)).toBeUndefined();
    expect(answer.get(headerName.paymentRequired)).toBeUndefined();
  });

  it("that the settlement refuses before it sends anything is refused, with a fresh challenge", async () => {
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

  it("is not asked for again where its answer went out, and is kept no longer", async () => {
    const shop = await open({
      options: { mpp: { mode: true, secrets: [secret] }, maxKeptAnswerBytes: 0 },
    });
    const Authorization = await buyer.payFor(`${shop.url}/paid`);
    const headers = { Authorization, [headerName.idempotencyKey]: "a-key-of-the-buyer" };
    await supertest(shop.url).get("/paid").set(headers).expect(200);
    const answer = await supertest(shop.url).get("/paid").set(headers).expect(409);
    expect(answer.body).toMatchObject({ error: "answer_not_kept", charged: true });
    expect(answer.get(headerName.authenticate)).toBeUndefined();
  });

  it("has the same receipt with each delivery, also by a facilitator that tells no time", async () => {
    let clock = Date.now();
    const shop = await open({
      options: { mpp: { mode: true, secrets: [secret] }, now: () => clock },
    });
    const Authorization = await buyer.payFor(`${shop.url}/paid`);
    const headers = { Authorization, [headerName.idempotencyKey]: "a-key-of-the-buyer" };
    const first = await supertest(shop.url).get("/paid").set(headers).expect(200);
    clock += 5000;
    const again = await supertest(shop.url).get("/paid").set(headers).expect(200);
    expect(again.get(headerName.paymentReceipt)).toBe(first.get(headerName.paymentReceipt));
    expect(shop.runs()).toBe(1);
  });

  it("is the application's own on a route that MPP does not sell", async () => {
    for (const mpp of [false, "auto"] as const) {
      const shop = await open({ options: { mpp } });
      const own = { Authorization: "Payment of-the-application" };
      const unpaid = await supertest(shop.url).get("/paid").set(own).expect(402);
      expect(unpaid.body).toMatchObject({ error: "Payment required" });
      const { headers } = await createBuyer().payFor(`${shop.url}/paid`);
      await supertest(shop.url)
        .get("/paid")
        .set({ ...own, ...headers })
        .expect(200, { authorization: own.Authorization });
    }
  });

  it("leaves no trace of credential, secret or signature in what is reported", async () => {
    const shop = await open();
    const header = await buyer.payFor(`${shop.url}/paid`);
    shop.facilitator.onSettle = () => Promise.reject(new Error("down"));
    const answer = await supertest(shop.url).get("/paid").set("Authorization", header).expect(503);
    const told = `${answer.text}${shop.errors.map(String).join()}`;
    for (const text of [secret, header.slice(8, 60)]) expect(told).not.toContain(text);
  });
});

describe("the reference's client", () => {
  it("buys from a route with all three offers, and signs once", async () => {
    const shop = await open();
    const { account } = createBuyer();
    const client = Mppx.create({
      polyfill: false,
      methods: [evm.charge({ account, authorization: plasmaUsdt0 })],
    });
    const signed: string[] = [];
    client.onCredentialCreated(({ credential }) => void signed.push(credential));
    const answer = await client.fetch(`${shop.url}/paid`);
    expect(answer.status).toBe(200);
    expect(signed).toHaveLength(1);
    expect(shop.facilitator.settled).toHaveLength(1);
  });

  it("buys twenty times at once with one wallet, and signs once for each", async () => {
    const shop = await open();
    const { account } = createBuyer();
    const client = Mppx.create({
      polyfill: false,
      methods: [evm.charge({ account, authorization: plasmaUsdt0 })],
    });
    const signed: string[] = [];
    client.onCredentialCreated(({ credential }) => void signed.push(credential));
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => client.fetch(`${shop.url}/paid`)),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
    expect(signed).toHaveLength(20);
    expect(shop.facilitator.settled).toHaveLength(20);
  });

  it("signs once where the outcome is not known", async () => {
    const shop = await open();
    shop.facilitator.onSettle = () => Promise.reject(new Error("down"));
    const { account } = createBuyer();
    const client = Mppx.create({
      polyfill: false,
      methods: [evm.charge({ account, authorization: plasmaUsdt0 })],
    });
    const signed: string[] = [];
    client.onCredentialCreated(({ credential }) => void signed.push(credential));
    expect((await client.fetch(`${shop.url}/paid`)).status).toBe(503);
    expect(signed).toHaveLength(1);
  });
});

function priceOf() {
  const { address: asset, name, version, decimals } = plasmaUsdt0;
  return { amount: "1000", asset, extra: { name, version, decimals } };
}

/** The authorization of a credential in the words of x402, as a stranger reads it from the chain. */
async function asX402(url: string, credential: Credential) {
  const offer = await fetchOffer(url, 2);
  const [offered] = offer.accepts;
  const payload = readAuthorizationPayload(credential);
  if (offered?.x402Version !== 2 || payload === undefined) throw new Error("No offer");
  return { signed: toHeaders({ x402Version: 2, accepted: offered.accepted, payload }).headers };
}
