import {
  type Credential,
  decodeChargeRequest,
  decodePaymentReceipt,
  encodeChargeRequest,
  encodeCredential,
  encodeOpaque,
  headerName,
  plasmaUsdt0,
  readAuthorizationPayload,
  readFacilitatorArguments,
} from "@coinslot/protocol";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import { createBuyer, fetchOffer, toHeaders } from "../../testing/buyer.ts";
import { challengesOf, fetchChallenges } from "../../testing/mpp-buyer.ts";
import { buyer, open, opened, problem, secret } from "../../testing/mpp-scene.ts";
import { createPaperFacilitator } from "../../testing/paper-facilitator.ts";

afterEach(async () => {
  await Promise.all(opened.splice(0).map((shop) => shop.close()));
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
  ])("a credential with %s is refused, with a fresh challenge", async (_case, change, name) => {
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
  ])("a credential of %s is malformed, with a fresh challenge", async (_case, header) => {
    const shop = await open();
    const answer = await supertest(shop.url).get("/paid").set("Authorization", header).expect(402);
    expect(answer.body).toMatchObject({ type: problem("malformed-credential") });
    expect(challengesOf(answer.get(headerName.authenticate))).toHaveLength(1);
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

  it("a credential and the same authorization by x402 are one payment, whichever comes first", async () => {
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

  it("a credential whose answer was lost is not taken up by a stranger with its public calldata", async () => {
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

  it("a credential with its nonce in capitals is the same payment", async () => {
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

  it.each([
    "invalid_exact_evm_transaction_failed",
    "transaction_failed",
    "confirmation_timed_out",
    "duplicate_settlement",
    "words of another facilitator",
    // Another sender has executed it, and no node shows the transfer yet.
    "invalid_exact_evm_nonce_already_used",
  ])(
    "a credential that a facilitator may have sent is not asked for again: %s",
    async (errorReason) => {
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
    },
  );

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

/**
 * The authorization of a credential in the words of x402, as a stranger reads it from the chain.
 */
async function asX402(url: string, credential: Credential) {
  const offer = await fetchOffer(url, 2);
  const [offered] = offer.accepts;
  const payload = readAuthorizationPayload(credential);
  if (offered?.x402Version !== 2 || payload === undefined) throw new Error("No offer");
  return { signed: toHeaders({ x402Version: 2, accepted: offered.accepted, payload }).headers };
}
