import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { headerName, type PaymentPayload } from "@coinslot/protocol";
import supertest from "supertest";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createBuyer, fetchOffer, toHeaders } from "../testing/buyer.ts";
import { openShop, option, type Shop } from "../testing/shop.ts";

let shop: Shop;
let runs = 0;
const buyer = createBuyer();

beforeAll(async () => {
  shop = await openShop({
    routes: { "GET /paid": { accepts: [option()] } },
    serve(app) {
      app.get("/paid", (_request, response) => {
        runs += 1;
        response.json({ secret: true });
      });
    },
  });
});

afterAll(async () => {
  expect(runs).toBe(0);
  await shop.close();
});

function base64(value: unknown): string {
  return Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64");
}

async function goodPayload(version: 1 | 2): Promise<PaymentPayload> {
  return (await buyer.payFor(`${shop.url}/paid`, { version })).payload;
}

/** Sends headers that HTTP clients refuse to send, and resolves to the whole answer. */
function sendRaw(lines: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(shop.port, "127.0.0.1");
    let answer = "";
    socket.on("data", (chunk) => {
      answer += chunk.toString("latin1");
    });
    socket.on("close", () => resolve(answer));
    socket.on("error", reject);
    const head = ["GET /paid HTTP/1.1", "Host: shop", "Connection: close", ...lines];
    // Not ended: Node's server drops the answers of half-closed connections.
    socket.write(`${head.join("\r\n")}\r\n\r\n`, "latin1");
  });
}

describe.each([headerName.payment, headerName.paymentSignature])(
  "the payment header %s",
  (name) => {
    const version = name === headerName.payment ? 1 : 2;
    const nested = `${'{"a":'.repeat(200)}1${"}".repeat(200)}`;

    it.each([
      ["that is empty", ""],
      ["that is not base64", "%%%"],
      ["that is not JSON", base64("{")],
      ["that is not UTF-8", Buffer.from([0xff, 0xfe, 0xfd]).toString("base64")],
      ["over 8 KB", base64({ filling: "x".repeat(9000) })],
      ["that is nested deeply", base64(nested)],
      ["that is an array", base64([])],
      ["that is null", base64("null")],
      ["that holds __proto__", base64('{"__proto__":{"x402Version":1}}')],
      ["that holds NUL", base64('{"x402Version":1,"scheme":"\\u0000"}')],
      ["with wrong types", base64({ x402Version: "1", payload: 3 })],
      ["of an unknown version", base64({ x402Version: 3 })],
      ["of random bytes", randomBytes(300).toString("base64")],
    ])("%s is answered with 400, in JSON", async (_case, value) => {
      const answers = await Promise.all(
        [1, 2].map(() => supertest(shop.url).get("/paid").set(name, value).expect(400)),
      );
      const bodies = answers.map(({ body }): unknown => body);
      for (const answer of answers) {
        expect(answer.get("Cache-Control")).toBe("no-store");
      }
      // The same message for the same fault, without the input.
      expect(bodies[0]).toEqual(bodies[1]);
      expect(bodies[0]).toEqual({
        error: "invalid_payload",
        message: expect.stringContaining(`The ${name} header`),
      });
    });

    it("is answered with 400 when it comes twice", async () => {
      const { headers } = toHeaders(await goodPayload(version));
      const answer = await sendRaw([`${name}: ${headers[name]}`, `${name}: ${headers[name]}`]);
      expect(answer).toMatch(/^HTTP\/1.1 400 /);
      expect(answer).toContain("A request brings one payment header, once");
    });

    it("is answered with 400 in the form of the other version", async () => {
      const { headers } = toHeaders(await goodPayload(version === 1 ? 2 : 1));
      const [value = ""] = Object.values(headers);
      await supertest(shop.url).get("/paid").set(name, value).expect(400);
    });

    it.each([
      [
        "a wrong amount",
        "value",
        ["0", "999", "1e3", "0x10", "-1", "01", "1000.0", (2n ** 256n).toString()],
      ],
      ["a wrong end", "validBefore", ["0", "now", (2n ** 256n).toString()]],
      ["a later beginning", "validAfter", ["later"]],
      [
        "a wrong recipient",
        "to",
        [`0x${"0".repeat(40)}`, "0xb8CE59FC3717ada4C02eaDF9682A9e934F625ebb"],
      ],
    ])("is refused with %s: %s", async (_case, member, values) => {
      const seconds = Math.floor(Date.now() / 1000);
      for (const value of values) {
        const payload: unknown = structuredClone(await goodPayload(version));
        const meant =
          value === "now"
            ? String(seconds + 5)
            : value === "later"
              ? String(seconds + 3600)
              : value;
        setMember(payload, member, meant);
        const answer = await supertest(shop.url).get("/paid").set(name, base64(payload));
        expect([400, 402]).toContain(answer.status);
        expect(answer.get("Content-Type")).toMatch(/^application\/json/);
      }
    });
  },
);

/** Changes one member of the authorization, of any type. */
function setMember(payload: unknown, member: string, value: string): void {
  let at = payload;
  for (const name of ["payload", "authorization"]) {
    if (typeof at !== "object" || at === null) throw new Error("No authorization");
    at = Reflect.get(at, name);
  }
  if (typeof at !== "object" || at === null) throw new Error("No authorization");
  Reflect.set(at, member, value);
}

describe("a payment", () => {
  it("is answered with 400 in both versions at once", async () => {
    const headers = {
      ...toHeaders(await goodPayload(1)).headers,
      ...toHeaders(await goodPayload(2)).headers,
    };
    await supertest(shop.url).get("/paid").set(headers).expect(400);
  });

  it("is answered with the offer when it is for something else", async () => {
    const offer = await fetchOffer(`${shop.url}/paid`, 2);
    const [offered] = offer.accepts;
    if (offered?.x402Version !== 2) throw new Error("No offer");
    const cheaper = { ...offered.requirements, amount: "999" };
    const { headers } = await buyer.sign({
      x402Version: 2,
      requirements: cheaper,
      accepted: cheaper,
    });
    const answer = await supertest(shop.url).get("/paid").set(headers).expect(402);
    expect(answer.get(headerName.paymentRequired)).toBeDefined();
    expect(answer.body).toMatchObject({ error: "No matching payment requirements" });
  });

  it("is refused with the reason for another account's signature", async () => {
    const { headers } = await buyer.payFor(`${shop.url}/paid`, {
      authorization: { from: "0x00000000000000000000000000000000000000a1" },
    });
    const answer = await supertest(shop.url).get("/paid").set(headers).expect(402);
    expect(answer.body).toMatchObject({ error: "invalid_exact_evm_signature" });
  });

  it("is refused without a call to the facilitator when it expires before the handler's time limit", async () => {
    const before = shop.facilitator.verifications;
    const { headers } = await buyer.payFor(`${shop.url}/paid`, {
      authorization: { validBefore: BigInt(Math.floor(Date.now() / 1000) + 30) },
    });
    const answer = await supertest(shop.url).get("/paid").set(headers).expect(402);
    expect(answer.body).toMatchObject({
      error: "invalid_exact_evm_payload_authorization_valid_before",
    });
    expect(shop.facilitator.verifications).toBe(before);
  });
});
