import { type Devnet, startDevnet } from "@coinslot/devnet";
import supertest from "supertest";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { json, type ScriptedApi, startScriptedApi } from "./testing/scripted-api.ts";
import { openShop, price, type Shop } from "./testing/shop.ts";

const apiKey = "csk_the-secret-key";
const address = "0x90F79bf6EB2c4f870365E785982E1f101E93b906";
const balance = { tokenBalance: { blockchain: "plasma", token: "usdt", amount: "7" } };
const healthy = {
  status: "healthy",
  timestamp: "2026-01-01T00:00:00.000Z",
  summary: { healthy: 0, unhealthy: 0, total: 0 },
  checks: { database: { status: "healthy" }, indexers: {} },
};

let devnet: Devnet;
let api: ScriptedApi;
let shop: Shop;

beforeAll(async () => {
  [devnet, api] = await Promise.all([startDevnet(), startScriptedApi()]);
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 5_000_000n });
  api.answer(json(200, { chains: [{ name: "plasma", tokens: ["usdt"] }] }));
  shop = await openShop(devnet, { remote: { url: api.url, apiKey } });
});

afterAll(async () => {
  await shop?.stop();
  await api?.stop();
  await devnet?.stop();
});

beforeEach(() => api.answer(json(200, balance)));

/** The answer and the cost of a purchase. */
async function buy(path = `/api/v1/plasma/usdt/${address}/token-balances`, init: RequestInit = {}) {
  const before = await shop.takings();
  const response = await shop.pay(`${shop.url}${path}`, init);
  const text = await response.text();
  const { status, headers } = response;
  return { status, headers, text, cost: (await shop.takings()) - before };
}

describe("a forwarded request", () => {
  it("is answered and sold also for a batch of the maximum size", async () => {
    const item = { blockchain: "plasma", token: "usdt", address, limit: 1_000 };
    // Ten histories of a thousand records, with the longest possible names and amounts.
    const record = { ...item, filler: "x".repeat(560) };
    const answer = Array(10).fill({ transfers: Array(1_000).fill(record) });
    api.answer(json(200, answer));
    const bought = await buy("/api/v1/batch/token-transfers", {
      method: "POST",
      body: JSON.stringify(Array(10).fill(item)),
      headers: { "content-type": "application/json" },
    });
    expect(bought).toMatchObject({ status: 200, cost: 10n * price });
    expect(bought.text).toHaveLength(JSON.stringify(answer).length);
  });

  it("carries our key, its query and no other header of the buyer", async () => {
    const bought = await buy(`/api/v1/plasma/usdt/${address}/token-transfers?limit=3&sort=asc`, {
      headers: {
        authorization: "Bearer buyer",
        cookie: "buyer=1",
        "x-api-key": "the buyer's",
        "x-forwarded-for": "1.2.3.4",
        te: "trailers",
      },
    });
    expect(bought).toMatchObject({ status: 200, text: JSON.stringify(balance), cost: price });
    const [request] = api.arrived;
    expect(request?.target).toBe(`/api/v1/plasma/usdt/${address}/token-transfers?limit=3&sort=asc`);
    const { "x-api-key": key, accept, ...others } = request?.headers ?? {};
    expect({ key, accept }).toEqual({ key: apiKey, accept: "application/json" });
    for (const name of ["authorization", "cookie", "x-forwarded-for", "te", "payment-signature"]) {
      expect(others).not.toHaveProperty(name);
    }
  });

  it("carries the counted batch, once it is paid", async () => {
    const items = [{ address }, { address }];
    api.answer(json(200, [balance, balance]));
    const bought = await buy("/api/v1/batch/token-balances", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(items),
    });
    expect(bought).toMatchObject({ status: 200, cost: 2n * price });
    expect(api.arrived).toHaveLength(1);
    expect(JSON.parse(api.arrived[0]?.body ?? "")).toEqual(items);
  });

  it("states the content type of its body, for any type of the buyer's", async () => {
    const text = JSON.stringify([{ address }]);
    for (const [type, body] of [
      ["application/json; charset=utf-16le", new Uint8Array(Buffer.from(text, "utf16le"))],
      ["text/plain", text],
    ] as const) {
      api.answer(json(200, [balance]));
      const headers = { "content-type": type };
      await buy("/api/v1/batch/token-balances", { method: "POST", headers, body });
      const [request] = api.arrived;
      expect(request?.headers["content-type"]).toBe("application/json");
      expect(request?.body).toBe(text);
    }
  });

  it("has an unambiguous path", async () => {
    await buy(`/api/v1/plasma/usdt/${address.replace("x", "%78")}/token-balances`);
    expect(api.arrived[0]?.target).toBe(`/api/v1/plasma/usdt/${address}/token-balances`);
    for (const name of ["%2e%2e%2fkeys", "..%2f..%2fkeys", "a%5cb"]) {
      api.answer(json(200, balance));
      const refused = await buy(`/api/v1/plasma/usdt/${name}/token-balances`);
      expect(refused).toMatchObject({ status: 400, cost: 0n });
      expect(api.arrived).toEqual([]);
    }
  });
});

describe("a forwarded answer", () => {
  it("is free and unchanged when the API refuses, temporarily or for good", async () => {
    for (const status of [400, 404, 429, 500, 502, 503]) {
      const answered = { error: "any", message: `by status ${status}`, status };
      api.answer(json(status, answered, { "retry-after": "7", "x-internal": "secret" }));
      const refused = await buy();
      expect(refused).toMatchObject({ status, text: JSON.stringify(answered), cost: 0n });
      expect(refused.headers.get("retry-after")).toBe("7");
      expect(refused.headers.get("x-internal")).toBeNull();
    }
  });

  it("keeps the link to the next page, and drops headers meant for us", async () => {
    const link = '</api/v1/x?cursor=1>; rel="next"';
    api.answer(json(200, balance, { link, "set-cookie": "a=1", ratelimit: "r=3" }));
    const { headers } = await buy();
    expect(headers.get("link")).toBe(link);
    expect(headers.get("set-cookie")).toBeNull();
    expect(headers.get("ratelimit")).toBeNull();
  });

  it("is 502 in JSON, and free, when it does not come from the API", async () => {
    const faults = [
      json(302, {}, { location: "http://127.0.0.1:1/" }),
      json(401, { error: "Unauthorized", message: "The API key is not valid.", status: 401 }),
      json(403, {}),
      json(200, { youSent: apiKey }),
      json(200, "x".repeat(9 * 2 ** 20)),
    ];
    for (const fault of faults) {
      api.answer(fault);
      const refused = await buy();
      expect(refused).toMatchObject({ status: 502, cost: 0n });
      expect(JSON.parse(refused.text)).toMatchObject({ error: "Bad Gateway", status: 502 });
    }
  });

  it("is 503 in JSON, and free, when it breaks off or is missing", async () => {
    for (const breakOff of [
      (response) => void response.destroy(),
      (response) => {
        response.writeHead(200, { "content-length": "100" });
        response.write("{", () => response.destroy());
      },
    ] satisfies Parameters<ScriptedApi["answer"]>[0][]) {
      api.answer(breakOff);
      const refused = await buy();
      expect(refused).toMatchObject({ status: 503, cost: 0n });
      expect(JSON.parse(refused.text)).toMatchObject({ error: "Service Unavailable", status: 503 });
      expect(refused.headers.get("retry-after")).toBe("1");
    }
  });
});

describe("the free routes", () => {
  it("ask the API once for many requests, and cache chains and health", async () => {
    api.answer((response, request) => {
      const isHealth = request.target.endsWith("health");
      json(200, isHealth ? healthy : { chains: [] })(response, request);
    });
    const urls = ["health", "chains"].map((what) => `${shop.url}/api/v1/${what}`);
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, index) => fetch(urls[index % 2] ?? "")),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(api.arrived.map(({ target }) => target).sort()).toEqual([
      "/api/v1/chains",
      "/api/v1/health",
    ]);
  });
});

describe("the key of the remote service", () => {
  it("appears in no answer and no log", async () => {
    const paths = [
      "/",
      "/metrics",
      "/readyz",
      "/api/v1/health",
      "/api/v1/chains",
      "/api/v1/keys",
      `/api/v1/plasma/usdt/${address}/token-balances`,
    ];
    for (const path of paths) {
      const { headers, text } = await supertest(shop.url).get(path);
      expect(`${JSON.stringify(headers)}${text}`).not.toContain(apiKey);
    }
    // All faults above were logged.
    expect(shop.log()).toContain("refuses INDEXER_API_KEY with status 401");
    expect(shop.log()).not.toContain(apiKey);
  });
});
