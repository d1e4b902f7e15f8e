import { createHmac } from "node:crypto";
import { createPayingFetch } from "@coinslot/client";
import { type Devnet, listen, startDevnet, startPostgres } from "@coinslot/devnet";
import { byDay } from "@coinslot/devnet/effort";
import { createFacilitatorClient, paymentMiddleware } from "@coinslot/express";
import { createRefundOperation, operatorAt } from "@coinslot/facilitator";
import { ConfigurationError } from "@coinslot/protocol";
import express from "express";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import * as z from "zod";
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

describe.each(byDay(["postgres"], engines))("a hosted facilitator on %s", (engine) => {
  it("gives payments back from its float, by its operator over HTTP", async () => {
    const [float] = devnet.accounts.others;
    if (float === undefined) throw new Error("The devnet has no further account");
    await devnet.mint({ to: float.address, amount: 10_000n });
    const operatorKey = "0123456789abcdef".repeat(2);
    const hosted = await startHosted(devnet, {
      COINSLOT_LEDGER: await createDatabaseUrl(engine),
      FACILITATOR_PAY_TO: devnet.accounts.seller.address,
      FACILITATOR_FLOAT_PRIVATE_KEY: float.privateKey,
      FACILITATOR_FLOAT_MAX_PER_DAY: "1000",
      FACILITATOR_OPERATOR_PORT: "0",
      FACILITATOR_OPERATOR_KEY: operatorKey,
    });
    const shop = await openShop({ url: hosted.url });
    expect((await buy(shop)).status).toBe(200);
    const [payment] = (await hosted.facilitator.payments.list()).payments;
    const [line = ""] = hosted
      .log()
      .split("\n")
      .filter((each) => each.includes("commands of the operator are served over HTTP"));
    const { port } = z
      .object({ address: z.object({ port: z.number() }) })
      .parse(JSON.parse(line)).address;
    const url = `http://127.0.0.1:${port}`;
    const operator = operatorAt({ url, key: operatorKey });
    const refund = await operator.run(createRefundOperation, {
      payment: payment?.id ?? "",
      idempotencyKey: "1",
    });
    const stateOf = async () => {
      await devnet.mine(20);
      return (await hosted.facilitator.refunds.get(refund.id))?.state;
    };
    await expect.poll(stateOf, { timeout: 60_000, interval: 100 }).toBe("final");
    const wrong = operatorAt({ url, key: operatorKey.toUpperCase() });
    await expect(
      wrong.run(createRefundOperation, { payment: payment?.id ?? "", idempotencyKey: "2" }),
    ).rejects.toThrow();
  });

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
  it("a hosted facilitator does not start on a port in use, without its database or with another chain's endpoint, and reports all at once", async () => {
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

  it("a hosted facilitator does not start beside another one on the same file", async () => {
    const ledger = await createDatabaseUrl("sqlite");
    await startHosted(devnet, { COINSLOT_LEDGER: ledger });
    const problems = await problemsOf({ COINSLOT_LEDGER: ledger });
    expect(problems).toEqual([
      expect.stringMatching(/^COINSLOT_LEDGER: The ledger cannot be used/),
    ]);
  });

  it("a hosted facilitator does not start where no endpoint answers for the chain", async () => {
    const problems = await problemsOf({ COINSLOT_RPC_URL: "http://127.0.0.1:1/secret" });
    expect(problems.join()).toMatch(/^eip155:9745: .*check its URL/);
    expect(problems.join()).not.toContain("secret");
  });
});
