import { createHmac } from "node:crypto";
import { createPayingFetch } from "@coinslot/client";
import { type Devnet, listen, startDevnet, startPostgres } from "@coinslot/devnet";
import { createFacilitatorClient, paymentMiddleware } from "@coinslot/express";
import { type Address, ConfigurationError, FacilitatorError } from "@coinslot/protocol";
import express from "express";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { startHttpServer } from "../http-server.ts";
import { createDatabaseUrl, engines } from "../testing/database-url.ts";
import { createCallerKey } from "./caller-keys.ts";
import { openReceiver, signRequest, startHosted } from "./testing/hosted.ts";

/** Timeout for conditions, on a busy machine. */
const patience = { timeout: 20_000 };

let devnet: Devnet;

beforeAll(async () => {
  devnet = await startDevnet();
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000_000n });
});

afterEach(async () => {
  await devnet.setIntervalMining(0);
  await devnet.setAutomine(true);
});

afterAll(() => devnet?.stop());

/** A shop with a remote facilitator; resolves to the URL of its paid route. */
async function openShop(options: { url: string; key?: string; eventCallback?: string }) {
  const { url, key, eventCallback } = options;
  const facilitator = createFacilitatorClient({
    url,
    headers: key === undefined ? {} : { Authorization: `Bearer ${key}` },
    eventCallback,
  });
  const { network, accounts } = devnet;
  const payTo = accounts.seller.address;
  const gate = paymentMiddleware(
    { "GET /weather": { accepts: [{ scheme: "exact", network, price: "$0.001", payTo }] } },
    facilitator,
  );
  const app = express().use(gate);
  app.get("/weather", (_request, response) => void response.send("sun"));
  await gate.ready();
  const variables = { host: "", port: "" };
  const server = await startHttpServer(app, { host: "127.0.0.1", port: 0, variables });
  onTestFinished(() => server.close());
  return `${server.url}/weather`;
}

function buy(url: string): Promise<Response> {
  const { network, rpcUrl, accounts } = devnet;
  return createPayingFetch({ account: accounts.buyer, rpcUrls: { [network]: rpcUrl } })(url);
}

async function problemsOf(env: Record<string, string>): Promise<readonly string[]> {
  try {
    await startHosted(devnet, env);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
  return [];
}

const typesOfPurchase = [
  "verify_started",
  "verify_completed",
  "settle_started",
  "settle_completed",
];

describe.each(engines)("a hosted facilitator on %s", (engine) => {
  it("serves a remote shop, and sends it signed events", async () => {
    const { key, entry } = createCallerKey("shop");
    const secret = Buffer.alloc(32, 7);
    const receiver = await openReceiver();
    const hosted = await startHosted(devnet, {
      COINSLOT_LEDGER: await createDatabaseUrl(engine),
      FACILITATOR_KEYS: entry,
      FACILITATOR_EVENT_SECRET: `whsec_${secret.toString("base64")}`,
      FACILITATOR_UNSAFE_PRIVATE_CALLBACKS: "true",
    });
    const { url } = hosted;
    const shop = await openShop({ url, key, eventCallback: `${receiver.url}/events` });
    const bought = await buy(shop);
    expect(bought.status).toBe(200);
    expect(await bought.text()).toBe("sun");

    // Verify and settle are two requests: the events of each come in their order.
    await expect
      .poll(() => receiver.types().toSorted(), patience)
      .toEqual(typesOfPurchase.toSorted());
    const { payments } = await hosted.facilitator.payments.list();
    const completed = receiver.received.find(({ body }) => body.includes("settle_completed"));
    expect(JSON.parse(completed?.body ?? "")).toMatchObject({
      details: {
        network: devnet.network,
        nonce: payments[0]?.authorization.nonce,
        transactionHash: payments[0]?.inclusion?.transactionHash,
      },
    });
    for (const { headers, body } of receiver.received) {
      const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
      const signature = createHmac("sha256", secret).update(signed).digest("base64");
      expect(headers["webhook-signature"]).toBe(`v1,${signature}`);
    }

    const metrics = (await hosted.get("/metrics")).text;
    expect(metrics).toContain(
      'coinslot_facilitator_requests_total{endpoint="settle",status="200"} 1',
    );
    expect(metrics).toContain('coinslot_facilitator_events_total{outcome="delivered"} 4');
    expect(metrics).toMatch(
      /coinslot_payments_total\{network="eip155:9745",outcome="confirmed"\} 1/,
    );
    expect((await hosted.get("/readyz")).body).toEqual({ status: "ready" });

    const target = { kind: "network", name: devnet.network } as const;
    await hosted.facilitator.stops.set(target, { reason: "back at noon" });
    const request = await signRequest(devnet);
    const authorized = { Authorization: `Bearer ${key}` };
    const reason = `New payments on ${devnet.network} are stopped: back at noon`;
    const refused = { status: 503, headers: { "retry-after": "60" } };
    expect(await hosted.post("/verify", request, authorized)).toMatchObject({
      ...refused,
      body: {
        isValid: false,
        invalidReason: "unexpected_verify_error",
        invalidMessage: reason,
      },
    });
    expect(await hosted.post("/settle", request, authorized)).toMatchObject({
      ...refused,
      body: { success: false, errorReason: "unexpected_settle_error", errorMessage: reason },
    });
    expect(hosted.log()).not.toContain("a request could not be answered");
    await expect(buy(shop)).rejects.toMatchObject({ status: 503, retryAfterSeconds: 60 });
    const readiness = await hosted.get("/readyz");
    expect(readiness).toMatchObject({
      status: 200,
      body: { status: "ready", stops: [{ ...target, reason: "back at noon" }] },
    });
    for (const unsaid of [
      key,
      devnet.accounts.relayer.privateKey.slice(2),
      secret.toString("base64"),
    ]) {
      expect(hosted.log() + metrics).not.toContain(unsaid);
    }
  });

  it("counts each caller and each endpoint separately", async () => {
    const [shop, kiosk] = [createCallerKey("shop"), createCallerKey("kiosk")];
    const ledger = await createDatabaseUrl(engine);
    const env = {
      COINSLOT_LEDGER: ledger,
      FACILITATOR_KEYS: `${shop.entry},${kiosk.entry}`,
      FACILITATOR_REQUESTS_PER_MINUTE: "3",
    };
    const hosted = await startHosted(devnet, env);
    // Each of two processes on one PostgreSQL knows the other's counts.
    const other = engine === "postgres" ? await startHosted(devnet, env) : hosted;
    const ask = async (which: typeof hosted, path: string, key: string) =>
      (await which.post(path, {}, { Authorization: `Bearer ${key}` })).status;

    const statuses = [];
    for (const which of [hosted, other, hosted, other, hosted]) {
      statuses.push(await ask(which, "/verify", shop.key));
    }
    expect(statuses).toEqual([400, 400, 400, 429, 429]);
    expect(await ask(other, "/verify", kiosk.key)).toBe(400);
    expect(await ask(other, "/settle", shop.key)).toBe(400);
    const refused = await hosted.post("/VERIFY/", {}, { "X-API-Key": shop.key });
    expect(refused.status).toBe(429);
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
    expect(refused.headers.ratelimit).toContain("r=0");
    expect(refused.body).toMatchObject({ error: "too_many_requests" });
  });

  it("finishes a settlement in flight, then exits", async () => {
    const ledger = await createDatabaseUrl(engine);
    const receiver = await openReceiver();
    const hosted = await startHosted(devnet, {
      COINSLOT_LEDGER: ledger,
      FACILITATOR_UNSAFE_PRIVATE_CALLBACKS: "true",
    });
    await devnet.setAutomine(false);
    const { signature: _, ...body } = await signRequest(devnet);
    // By a client with keep-alive.
    const answer = fetch(`${hosted.url}/settle`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Event-Callback": receiver.url },
      body: JSON.stringify(body),
    });
    await expect.poll(receiver.types, patience).toEqual(["settle_started"]);

    const stopping = hosted.stop();
    // New connections are refused, while running requests are finished.
    await expect(fetch(`${hosted.url}/livez`)).rejects.toThrow(TypeError);
    // A broadcast may reach the node after the first block.
    await devnet.setIntervalMining(1);
    const settled = await answer;
    expect(settled.headers.get("Connection")).toBe("close");
    expect(await settled.json()).toMatchObject({ success: true });
    await stopping;
    await expect.poll(receiver.types, patience).toEqual(["settle_started", "settle_completed"]);

    const next = await startHosted(devnet, { COINSLOT_LEDGER: ledger });
    const { payments } = await next.facilitator.payments.list();
    expect(payments.map(({ state }) => state)).toEqual(["confirmed"]);
  });
});

describe("a hosted facilitator", () => {
  it("requires a key where it has some, in either header, and never returns it", async () => {
    const { key, entry } = createCallerKey("shop");
    const hosted = await startHosted(devnet, { FACILITATOR_KEYS: entry });
    const secret = "a-wrong-key-that-is-secret-too";
    for (const headers of [
      {},
      { Authorization: secret },
      { Authorization: `Bearer ${secret}` },
      { "X-API-Key": secret },
      { Authorization: `Bearer ${entry}` },
      { Authorization: `Bearer ${secret}`, "X-API-Key": key },
    ]) {
      for (const path of ["/verify", "/settle", "/SETTLE", "/settle/", "/other"]) {
        const refused = await hosted.post(path, {}, headers);
        expect(refused.status).toBe(401);
        expect(refused.headers["www-authenticate"]).toContain("Bearer");
        expect(refused.text).not.toContain(secret);
      }
    }
    expect((await hosted.post("/verify", {}, { Authorization: `bearer ${key}` })).status).toBe(400);
    expect((await hosted.post("/verify", {}, { "X-API-Key": key })).status).toBe(400);
    expect((await hosted.get("/supported")).status).toBe(200);
    expect(hosted.log()).not.toContain(secret);

    const { paymentPayload, paymentRequirements } = await signRequest(devnet);
    const keyless = createFacilitatorClient({ url: hosted.url });
    await expect(keyless.verify(paymentPayload, paymentRequirements)).rejects.toThrow(
      FacilitatorError,
    );
  });

  it("settles its own sellers' payments only, in its own tokens", async () => {
    const hosted = await startHosted(devnet, {
      FACILITATOR_PAY_TO: devnet.accounts.seller.address.toLowerCase(),
    });
    const [stranger] = devnet.accounts.others;
    const toOther = await signRequest(devnet, { payTo: stranger?.address ?? devnet.token });
    const verified = await hosted.post("/verify", toOther);
    expect(verified.body).toMatchObject({
      isValid: false,
      invalidReason: "recipient_not_allowed",
    });
    const settled = await hosted.post("/settle", toOther);
    expect(settled.status).toBe(200);
    expect(settled.body).toMatchObject({
      success: false,
      errorReason: "recipient_not_allowed",
      transaction: "",
    });
    const asset = await devnet.deployToken();
    await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000n, token: asset });
    const otherToken = await signRequest(devnet, { asset });
    expect((await hosted.post("/settle", otherToken)).body).toMatchObject({
      success: false,
    });
    const good = await signRequest(devnet);
    expect((await hosted.post("/verify", good)).body).toMatchObject({ isValid: true });
    expect((await hosted.post("/settle", good)).body).toMatchObject({ success: true });
    expect((await hosted.facilitator.payments.list()).payments).toHaveLength(1);
  });

  it("contacts no private address, and settles all the same", async () => {
    const receiver = await openReceiver();
    const hosted = await startHosted(devnet);
    for (const callback of [
      receiver.url,
      `https://127.0.0.1:${receiver.port}/`,
      `https://2130706433:${receiver.port}/`,
      `https://[::ffff:127.0.0.1]:${receiver.port}/`,
      "https://169.254.169.254/latest/meta-data/",
    ]) {
      const { signature, ...body } = await signRequest(devnet);
      const settled = await hosted.post("/settle", body, { "X-Event-Callback": callback });
      expect(settled.body).toMatchObject({ success: true });
      expect(hosted.log()).not.toContain(signature);
    }
    expect(receiver.received).toEqual([]);
    const metrics = (await hosted.get("/metrics")).text;
    expect(metrics).not.toContain("coinslot_facilitator_events_total{");
  });

  it("answers in JSON, of bounded size, that no browser renders", async () => {
    const hosted = await startHosted(devnet);
    const large = await hosted.post("/verify", { filling: "x".repeat(70_000) });
    expect(large.status).toBe(413);
    const missing = await hosted.post("/nowhere", {});
    expect(missing.status).toBe(404);
    expect(missing.headers["content-type"]).toContain("application/json");
    expect(missing.headers["x-content-type-options"]).toBe("nosniff");
    expect(missing.headers["content-security-policy"]).toBe(
      "default-src 'none';frame-ancestors 'none'",
    );
    expect(missing.headers["x-powered-by"]).toBeUndefined();
    const supported = (await hosted.get("/supported")).body;
    expect(supported).toMatchObject({
      kinds: [{ network: devnet.network }, { network: devnet.network }],
      signers: { [devnet.network]: [devnet.accounts.relayer.address] },
    });
    expect(hosted.log()).toContain("Every caller can make this facilitator pay gas");
  });

  it("counts callers without a key by their address, from trusted proxies only", async () => {
    const hosted = await startHosted(devnet, { FACILITATOR_REQUESTS_PER_MINUTE: "1" });
    const proxied = await startHosted(devnet, {
      FACILITATOR_REQUESTS_PER_MINUTE: "1",
      FACILITATOR_TRUST_PROXY: "1",
    });
    const ask = async (which: typeof hosted, address: string) =>
      (await which.post("/verify", {}, { "X-Forwarded-For": address })).status;
    expect([await ask(hosted, "1.1.1.1"), await ask(hosted, "2.2.2.2")]).toEqual([400, 429]);
    expect([await ask(proxied, "1.1.1.1"), await ask(proxied, "2.2.2.2")]).toEqual([400, 400]);
    expect(await ask(proxied, "2.2.2.2")).toBe(429);
  });

  it("reads its ledger and metrics once a second at most, at any rate of probes", async () => {
    const hosted = await startHosted(devnet);
    let reads = 0;
    const list = hosted.facilitator.payments.list;
    const figures = hosted.facilitator.metrics.metrics;
    vi.spyOn(hosted.facilitator.payments, "list").mockImplementation((filter) => {
      reads += 1;
      return list(filter);
    });
    vi.spyOn(hosted.facilitator.metrics, "metrics").mockImplementation(() => {
      reads += 1;
      return figures.call(hosted.facilitator.metrics);
    });
    const startedAt = performance.now();
    const asked = Array.from({ length: 100 }, (_, n) =>
      hosted.get(n % 2 ? "/readyz" : "/metrics").then(({ status }) => status),
    );
    expect(new Set(await Promise.all(asked))).toEqual(new Set([200]));
    const seconds = Math.ceil((performance.now() - startedAt) / 1000);
    expect(reads).toBeLessThanOrEqual(2 * seconds);
  });

  it("counts forged payments against their caller's key, and returns the retry time", async () => {
    const [shop, kiosk] = [createCallerKey("shop"), createCallerKey("kiosk")];
    const hosted = await startHosted(devnet, { FACILITATOR_KEYS: `${shop.entry},${kiosk.entry}` });
    const forge = async () => {
      const request = await signRequest(devnet);
      const { authorization } = request.paymentPayload.payload;
      authorization.from = privateKeyToAccount(generatePrivateKey()).address;
      return request;
    };
    const ask = async (path: string, { key }: { key: string }, request: object) =>
      hosted.post(path, request, { Authorization: `Bearer ${key}` });
    const answers = [];
    for (let count = 0; count < 62; count += 1) {
      answers.push(await ask(count % 2 ? "/verify" : "/settle", shop, await forge()));
    }
    const limited = answers.filter(({ status }) => status === 503);
    // At least two, if a minute has ended meanwhile.
    expect(limited.length).toBeGreaterThanOrEqual(2);
    for (const { headers } of limited) {
      expect(Number(headers["retry-after"])).toBeGreaterThan(0);
    }
    expect((await ask("/verify", kiosk, await forge())).status).toBe(200);
    const good = await ask("/verify", shop, await signRequest(devnet));
    expect(good.body).toMatchObject({ isValid: true });
  });

  it("lets a wallet that has settled through a key pay beside that key's forgeries", async () => {
    const [shop, kiosk] = [createCallerKey("shop"), createCallerKey("kiosk")];
    const hosted = await startHosted(devnet, {
      FACILITATOR_KEYS: `${shop.entry},${kiosk.entry}`,
      FACILITATOR_REQUESTS_PER_MINUTE: "100000",
    });
    const ask = async (path: string, { key }: { key: string }, from: Address) =>
      hosted.post(path, await signRequest(devnet, { from }), { Authorization: `Bearer ${key}` });
    const deploy = async () => {
      const wallet = await devnet.deploySmartAccount({ owner: devnet.accounts.buyer.address });
      await devnet.mint({ to: wallet, amount: 10_000n });
      return wallet;
    };
    const [paying, verified, elsewhere] = [await deploy(), await deploy(), await deploy()];
    expect((await ask("/settle", shop, paying)).body).toMatchObject({ success: true });
    expect((await ask("/verify", shop, verified)).body).toMatchObject({ isValid: true });
    expect((await ask("/settle", kiosk, elsewhere)).body).toMatchObject({ success: true });
    // A minute may end in between, and the budget with it.
    await expect
      .poll(async () => {
        for (let count = 0; count < 31; count += 1) {
          await ask("/verify", shop, privateKeyToAccount(generatePrivateKey()).address);
        }
        const answers = [
          await ask("/verify", shop, verified),
          await ask("/verify", shop, elsewhere),
        ];
        return answers.map(({ status }) => status);
      }, patience)
      .toEqual([503, 503]);
    expect((await ask("/verify", shop, paying)).body).toMatchObject({ isValid: true });
    expect((await ask("/verify", kiosk, verified)).body).toMatchObject({ isValid: true });
  });

  it("is not ready, and answers 503, while its database is away", async () => {
    const postgres = await startPostgres();
    onTestFinished(() => postgres.stop());
    const { url } = await postgres.createDatabase();
    const hosted = await startHosted(devnet, { COINSLOT_LEDGER: url });
    expect((await hosted.get("/readyz")).status).toBe(200);
    const stop = { kind: "route", name: "GET /cake" } as const;
    await hosted.facilitator.stops.set(stop, { reason: "no cake" });
    await postgres.stop();
    await expect
      .poll(async () => hosted.get("/readyz"), patience)
      .toMatchObject({
        status: 503,
        body: {
          status: "not ready",
          ledger: [expect.stringContaining("server is away")],
          stops: [stop],
        },
      });
    expect((await hosted.get("/livez")).status).toBe(200);
    const unanswered = await hosted.post("/settle", await signRequest(devnet));
    expect(unanswered.status).toBe(503);
    expect(unanswered.headers["retry-after"]).toBe("2");
    expect(unanswered.text).not.toContain("postgres");
  });
});

describe("a hosted facilitator does not start", () => {
  it("on a port in use, without its database or with another chain's endpoint, and reports all at once", async () => {
    const { port, close } = await listen();
    onTestFinished(close);
    const problems = await problemsOf({
      FACILITATOR_PORT: String(port),
      COINSLOT_LEDGER: "postgres://user:secret@127.0.0.1:1/coinslot",
      COINSLOT_NETWORK: "eip155:988",
      COINSLOT_RPC_URL: `${devnet.rpcUrl}/?key=secret`,
    });
    const text = problems.join("\n");
    expect(text).toContain(
      `Port ${port} on 127.0.0.1 is in use. Stop its program, or set FACILITATOR_PORT`,
    );
    expect(text).toMatch(
      /COINSLOT_LEDGER: The ledger cannot be used: .*127\.0\.0\.1:1\/coinslot.*\. Start or repair the database, or name another\./,
    );
    expect(text).toMatch(
      /eip155:988: .*chain 9745.*COINSLOT_RPC_URL, or correct the network's name/,
    );
    expect(problems).toHaveLength(3);
    expect(text).not.toContain("secret");
  });

  it("beside another one on the same file", async () => {
    const ledger = await createDatabaseUrl("sqlite");
    await startHosted(devnet, { COINSLOT_LEDGER: ledger });
    const problems = await problemsOf({ COINSLOT_LEDGER: ledger });
    expect(problems).toEqual([
      expect.stringMatching(/^COINSLOT_LEDGER: The ledger cannot be used/),
    ]);
  });

  it("where no endpoint answers for the chain", async () => {
    const problems = await problemsOf({ COINSLOT_RPC_URL: "http://127.0.0.1:1/secret" });
    expect(problems.join()).toMatch(/^eip155:9745: .*check its URL/);
    expect(problems.join()).not.toContain("secret");
  });
});
