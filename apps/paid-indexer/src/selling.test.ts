import { connect } from "node:net";
import { createPayingFetch, receiptOf } from "@coinslot/client";
import { type Devnet, startDevnet } from "@coinslot/devnet";
import { decodePaymentRequired, headerName } from "@coinslot/protocol";
import supertest from "supertest";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { openShop, price, priceAsked, type Shop } from "./testing/shop.ts";

let devnet: Devnet;
let shop: Shop;
let owner: string;

beforeAll(async () => {
  devnet = await startDevnet();
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 5_000_000n });
  shop = await openShop(devnet);
  owner = `${shop.url}/api/v1/devnet/usdt/${devnet.accounts.buyer.address}`;
  await vi.waitFor(() => supertest(shop.url).get("/api/v1/health").expect(200), {
    timeout: 20_000,
  });
});

afterAll(async () => {
  await shop?.stop();
  await devnet?.stop();
});

function batch(what: string, items: unknown): [url: string, init: RequestInit] {
  const headers = { "content-type": "application/json" };
  return [
    `${shop.url}/api/v1/batch/${what}`,
    { method: "POST", headers, body: JSON.stringify(items) },
  ];
}

/** The answer and the cost of a purchase. */
async function buy(...request: Parameters<typeof fetch>) {
  const before = await shop.takings();
  const response = await shop.pay(...request);
  const text = await response.text();
  return {
    status: response.status,
    body: text === "" ? undefined : JSON.parse(text),
    cost: (await shop.takings()) - before,
    receipt: receiptOf(response),
  };
}

describe("the discovery of the paid indexer", () => {
  it("lists what is sold, for the price that is asked, and is free", async () => {
    const { body } = await supertest(shop.url).get("/openapi.json").expect(200);
    const found = Object.entries<Record<string, Operation>>(body.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([verb, each]) => [verb, path, each["x-payment-info"].price]),
    );
    const owner = "/api/v1/{blockchain}/{token}/{address}";
    const single = { mode: "fixed", currency: "USD", amount: "0.001" };
    const batched = { mode: "dynamic", currency: "USD", min: "0.001", max: "0.01" };
    expect(found).toEqual([
      ["get", `${owner}/token-transfers`, single],
      ["get", `${owner}/token-balances`, single],
      ["post", "/api/v1/batch/token-transfers", batched],
      ["post", "/api/v1/batch/token-balances", batched],
    ]);
    const { text } = await supertest(shop.url).get("/llms.txt").expect(200);
    expect(text).toContain("Up to ten balances, each at the price of one; $0.001 to $0.01");
  });
});

interface Operation {
  "x-payment-info": { price: object };
}

describe("an offer of the paid indexer", () => {
  it("names the service's public URL", async () => {
    const behind = await openShop(devnet, undefined, { publicUrl: "https://shop.example/index" });
    try {
      const path = `/api/v1/devnet/usdt/${devnet.accounts.buyer.address}/token-balances`;
      const { headers } = await supertest(behind.url).get(path).expect(402);
      const offer = decodePaymentRequired(headers[headerName.paymentRequired.toLowerCase()] ?? "");
      expect(offer.resource?.url).toBe(`https://shop.example/index${path}`);
    } finally {
      await behind.stop();
    }
  });
});

describe("the free routes", () => {
  it("include health and chains", async () => {
    const chains = { chains: [{ name: "devnet", tokens: ["usdt"] }] };
    await supertest(shop.url).get("/api/v1/chains").expect(200, chains);
    const health = await supertest(shop.url).get("/api/v1/health");
    expect(health.body).toMatchObject({ status: "healthy", summary: { total: 1 } });
  });

  it("include probes and metrics", async () => {
    await supertest(shop.url).get("/livez").expect(200, { status: "live" });
    await supertest(shop.url).get("/readyz").expect(200, { status: "ready" });
    const { text } = await supertest(shop.url).get("/metrics");
    expect(text).toContain("coinslot_relayer_balance_wei{");
    expect(text).toContain("coinslot_indexer_head_block{");
  });
});

describe("a sold route", () => {
  it("has a page for a browser, with a wallet's way to pay", async () => {
    const { text } = await supertest(shop.url)
      .get(`${owner.slice(shop.url.length)}/token-balances`)
      .set({ Accept: "text/html,*/*;q=0.8", "Sec-Fetch-Mode": "navigate" })
      .expect(402)
      .expect("Content-Security-Policy", /^default-src 'none'; script-src 'nonce-/);
    expect(text).toContain("The balance of one token at one address");
    expect(text).toContain('"ways":[{');
  });

  it("answers 402 with its price", async () => {
    for (const what of ["token-transfers", "token-balances"]) {
      expect(priceAsked(await supertest(owner).get(`/${what}`))).toBe(price);
      expect(priceAsked(await supertest(owner).head(`/${what}`))).toBe(price);
    }
  });

  it("answers a payment of its price", async () => {
    const transfers = await buy(`${owner}/token-transfers?limit=1&sort=asc`);
    expect(transfers).toMatchObject({ status: 200, cost: price, receipt: { success: true } });
    expect(transfers.body.transfers).toHaveLength(1);
    expect(transfers.body.transfers[0]).toMatchObject({ amount: "5000000" });

    const balance = await buy(`${owner}/token-balances`);
    expect(balance).toMatchObject({ status: 200, cost: price });
    expect(balance.body.tokenBalance).toMatchObject({ blockchain: "devnet", token: "usdt" });

    const head = await buy(`${owner}/token-balances`, { method: "HEAD" });
    expect(head).toMatchObject({ status: 200, body: undefined, cost: price });
  });

  it("charges a batch by the item", async () => {
    const item = { blockchain: "devnet", token: "usdt", address: devnet.accounts.seller.address };
    for (const what of ["token-transfers", "token-balances"]) {
      for (const count of [1, 3, 10]) {
        const items = Array.from({ length: count }, () => item);
        const offered = await supertest(shop.url).post(`/api/v1/batch/${what}`).send(items);
        expect(priceAsked(offered)).toBe(BigInt(count) * price);
      }
      const unknown = { ...item, token: "doge" };
      const bought = await buy(...batch(what, [item, unknown, item]));
      expect(bought).toMatchObject({ status: 200, cost: 3n * price });
      expect(bought.body).toMatchObject([{}, { status: 400 }, {}]);
    }
  });

  it("refuses a payment for a smaller batch", async () => {
    const item = { blockchain: "devnet", token: "usdt", address: devnet.accounts.seller.address };
    let payment = "";
    const [url, init] = batch("token-balances", [item]);
    const spy: typeof fetch = async (input, sent) => {
      payment ||= new Request(input, sent).headers.get("PAYMENT-SIGNATURE") ?? "";
      return fetch(input, sent);
    };
    const { buyer } = devnet.accounts;
    const rpcUrls = { [devnet.network]: devnet.rpcUrl };
    await createPayingFetch({ account: buyer, rpcUrls, fetch: spy })(url, init);
    const answer = await supertest(url)
      .post("")
      .set("PAYMENT-SIGNATURE", payment)
      .send([item, item]);
    // The payment carries its key, which belongs to the smaller batch.
    expect(answer.status).toBe(409);
    expect(answer.body).toMatchObject({ error: "idempotency_key_in_use" });
  });
});

describe("a request that cannot be answered", () => {
  it("costs nothing: an unknown chain, an unknown token, no address, a wrong query", async () => {
    const address = devnet.accounts.buyer.address;
    for (const path of [
      `/api/v1/doge/usdt/${address}/token-transfers`,
      `/api/v1/devnet/doge/${address}/token-balances`,
      "/api/v1/devnet/usdt/0x12/token-balances",
      `/api/v1/devnet/usdt/${address}/token-transfers?limit=0`,
    ]) {
      const refused = await buy(`${shop.url}${path}`);
      expect(refused).toMatchObject({ status: 400, body: { error: "Bad Request" }, cost: 0n });
    }
  });

  it("costs nothing: a batch that is malformed, empty, or too long", async () => {
    const item = { blockchain: "devnet", token: "usdt", address: devnet.accounts.buyer.address };
    for (const items of [{}, "usdt", null, [], Array.from({ length: 11 }, () => item)]) {
      const refused = await buy(...batch("token-balances", items));
      expect(refused).toMatchObject({ status: 400, cost: 0n });
      expect(refused.body.message).toBe("body: must be an array of 1 to 10 items");
    }
    const send = (body: string) =>
      supertest(shop.url).post("/api/v1/batch/token-transfers").type("json").send(body);
    const broken = await send("[{").expect(400);
    expect(broken.body).toMatchObject({ message: "The body is not valid JSON." });
    await send(JSON.stringify(["x".repeat(70_000)])).expect(413);
  });

  it("costs nothing and is answered in JSON: other paths, other methods, other formats", async () => {
    const requestTo = supertest(shop.url);
    const history = `${new URL(owner).pathname}/token-transfers`;
    for (const [status, request] of [
      [404, requestTo.get("/api/v1/keys")],
      [404, requestTo.post("/api/v1/keys").send("{}")],
      [404, requestTo.get("/api/v1/nothing")],
      [404, requestTo.get("/docs")],
      [404, requestTo.get("/api/v1/batch/token-transfers")],
      [406, requestTo.get(history).set("accept", "text/csv")],
      [406, requestTo.get(history).set("accept", "text/event-stream")],
    ] as const) {
      const answer = await request.expect(status);
      expect(answer.body).toMatchObject({ status, message: expect.any(String) });
    }
  });
});

describe("another spelling of a path", () => {
  it("never avoids the price", async () => {
    const address = devnet.accounts.buyer.address;
    for (const path of [
      `//api/v1/devnet/usdt/${address}/token-transfers`,
      `/api//v1/devnet/usdt/${address}/token-transfers`,
      `/api/v1/devnet/usdt/${address}/%74oken-transfers`,
      `/%61pi/v1/devnet/usdt/${address}/token-balances`,
      `/API/V1/devnet/usdt/${address}/TOKEN-BALANCES`,
      `/api/v1/devnet/usdt/${address}/token-balances/`,
      `/api/v1/devnet/usdt/x/../${address}/token-balances`,
      `/api/v1/devnet%2fusdt/${address}/token-balances`,
      `/api/v1/devnet/usdt/${address}/token-balances%2f`,
      "/api/v1/health/../devnet/usdt/x/token-balances",
      `http://elsewhere.example/api/v1/devnet/usdt/${address}/token-balances`,
    ]) {
      const status = await sendRaw(`GET ${path}`);
      expect({ path, isRefused: status >= 400 }).toEqual({ path, isRefused: true });
    }
    const body = JSON.stringify([{ blockchain: "devnet", token: "usdt", address }]);
    for (const path of ["//api/v1/batch/token-balances", "/api/v1/%62atch/token-balances"]) {
      const status = await sendRaw(`POST ${path}`, body);
      expect({ path, status }).toEqual({ path, status: 402 });
    }
  });

  it("has the right price where Express matches the path", async () => {
    const encoded = devnet.accounts.buyer.address.replace("x", "%78");
    const bought = await buy(`${shop.url}/api/v1/devnet/usdt/${encoded}/token-balances`);
    expect(bought).toMatchObject({ status: 200, cost: price });
  });
});

/** Sends a raw request line, since `fetch` would normalise the path; returns the status. */
async function sendRaw(line: string, body = ""): Promise<number> {
  const { host, hostname, port } = new URL(shop.url);
  const socket = connect(Number(port), hostname);
  const head = [
    `${line} HTTP/1.1`,
    `Host: ${host}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Connection: close",
  ];
  // Not ended: Node's server drops the answers of half-closed connections.
  socket.write(`${head.join("\r\n")}\r\n\r\n${body}`);
  let answer = "";
  for await (const chunk of socket) answer += chunk;
  return Number(answer.split(" ")[1]);
}
