import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listen, startDevnet } from "@coinslot/devnet";
import { createFacilitator, runOperation, visitsOperation } from "@coinslot/facilitator";
import express from "express";
import supertest from "supertest";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, onTestFinished, test } from "vitest";
import { facilitatorRouter, paymentMiddleware, visitMetrics } from "./index.ts";
import { createBuyer } from "./testing/buyer.ts";

/** A shop on a ledger that is a file, and a hosted facilitator beside it. */
async function openShop() {
  const devnet = await startDevnet();
  onTestFinished(() => devnet.stop());
  const { network, accounts } = devnet;
  const directory = await mkdtemp(join(tmpdir(), "coinslot-visits-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const ledger = `sqlite:${join(directory, "ledger.db")}`;
  const facilitator = createFacilitator({
    networks: [{ network, rpcUrls: [devnet.rpcUrl], relayer: accounts.relayer }],
    ledger,
  });
  onTestFinished(() => facilitator.close());
  const price = {
    amount: "1000",
    asset: devnet.token,
    extra: { name: "USDT0", version: "1", decimals: 6 },
  };
  const accepts = { scheme: "exact", network, payTo: accounts.seller.address, price } as const;
  const routes = {
    "GET /paid": { accepts },
    "GET /failing": { accepts },
    "GET /users/:id": { accepts },
  };
  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(error);
  const gate = paymentMiddleware(routes, facilitator, { onError });
  const app = express();
  app.use("/facilitator", facilitatorRouter(facilitator, { onError: () => undefined }));
  app.use(gate);
  app.get("/paid", (_request, response) => void response.send("sold"));
  app.get("/failing", () => {
    throw new Error("out of order");
  });
  app.use(((_error, _request, response, _next) => {
    response.status(500).end();
  }) satisfies express.ErrorRequestHandler);
  const { url, close } = await listen(app);
  onTestFinished(close);
  return { devnet, facilitator, gate, errors, ledger, url };
}

test("requests that buy nothing are counted once each, by route and reason, and survive the process", async () => {
  const { devnet, facilitator, gate, ledger, url } = await openShop();
  const { network } = devnet;
  const asset = devnet.token.toLowerCase();
  const ofProcess = visitMetrics();
  await supertest(url).get("/paid").expect(503);
  await gate.ready();
  const buyer = createBuyer();
  const get = (path: string, headers: Record<string, string> = {}) =>
    supertest(url).get(path).set(headers);

  await get("/paid").expect(402);
  await get("/users/1").expect(402);
  await get("/users/2").expect(402);
  // Each payment below asks for the offer first.
  await get("/paid", (await buyer.payFor(`${url}/paid`)).headers).expect(402);
  const forged = await buyer.payFor(`${url}/paid`, {
    authorization: { from: devnet.accounts.buyer.address },
  });
  await get("/paid", forged.headers).expect(402);
  const cheap = await buyer.payFor(`${url}/paid`, { authorization: { value: 1n } });
  await get("/paid", cheap.headers).expect(402);
  await get("/paid", { "payment-signature": "nonsense" }).expect(400);
  await facilitator.stops.set({ kind: "route", name: "GET /paid" }, { reason: "closed" });
  await get("/paid", (await buyer.payFor(`${url}/paid`)).headers).expect(503);
  const { payload } = await buyer.payFor(`${url}/users/3`);
  await supertest(url)
    .post("/facilitator/verify")
    .send({
      x402Version: 2,
      paymentPayload: payload,
      paymentRequirements: Reflect.get(payload, "accepted"),
    })
    .expect(200);
  await supertest(url).post("/facilitator/verify").send({ x402Version: 2 }).expect(400);

  const scrape = await facilitator.metrics.metrics();
  expect(scrape).toContain("coinslot_ready 1");
  // They are in one place.
  expect(visitMetrics()).toBe(ofProcess);
  expect(scrape).toContain('coinslot_offers_total{route="GET /users/:id"} 3');
  await facilitator.close();
  const { visits } = await runOperation(ledger, visitsOperation, {
    by: ["route", "reason", "network", "asset"],
  });
  const none = { network: null, asset: null };
  const paid = { route: "GET /paid", network, asset };
  const byText = (rows: typeof visits) =>
    rows
      .map(({ route, reason, ...row }) => [row.count, route, reason, row.network, row.asset])
      .map((row) => row.join(" "))
      .toSorted();
  expect(byText(visits)).toEqual(
    byText([
      { count: 1, route: "GET /paid", reason: "not_ready", ...none },
      { count: 5, route: "GET /paid", reason: "offered", ...none },
      { count: 3, route: "GET /users/:id", reason: "offered", ...none },
      { count: 1, ...paid, reason: "invalid_exact_evm_insufficient_balance" },
      { count: 1, ...paid, reason: "invalid_exact_evm_signature" },
      { count: 1, ...paid, reason: "invalid_exact_evm_payload_authorization_value_mismatch" },
      { count: 1, ...paid, reason: "payments_stopped" },
      { count: 1, route: "GET /paid", reason: "invalid_payload", ...none },
      {
        count: 1,
        route: null,
        reason: "invalid_exact_evm_insufficient_balance",
        network,
        asset: null,
      },
      { count: 1, route: null, reason: "invalid_payload", ...none },
    ]),
  );
});

test("a flood of invented paths, payers, networks and tokens makes a bounded number of rows", async () => {
  const { facilitator, gate, ledger, url } = await openShop();
  await gate.ready();
  const { payload } = await createBuyer().payFor(`${url}/paid`);
  const accepted: unknown = Reflect.get(payload, "accepted");
  for (let index = 0; index < 150; index += 1) {
    const hex = index.toString(16).padStart(40, "a");
    const { headers } = await createBuyer().payFor(`${url}/users/${hex}?q=${hex}`, {
      authorization: { from: `0x${hex}` },
    });
    const reason = `reason-${hex}`;
    await supertest(url)
      .get(`/users/${hex}`)
      .set({ ...headers, reason });
    await supertest(url).get(`/users/${hex}`).set("payment-signature", hex);
    const terms = { ...Object(accepted), network: `eip155:${index + 1}`, asset: `0x${hex}` };
    await supertest(url)
      .post("/facilitator/verify")
      .send({
        x402Version: 2,
        paymentPayload: { ...payload, accepted: terms },
        paymentRequirements: terms,
      });
  }
  await facilitator.close();
  const { visits } = await runOperation(ledger, visitsOperation, {
    by: ["route", "reason", "network", "asset"],
  });
  expect(visits.length).toBeLessThan(10);
  expect(visits.reduce((sum, { count }) => sum + count, 0)).toBe(1 + 4 * 150);
});

test("a caller's flood of forged payments has a reason of its own, and is no fault of the house", async () => {
  const { facilitator, gate, errors, url } = await openShop();
  await gate.ready();
  const buyer = createBuyer();
  const forged: Record<string, string>[] = [];
  // More than the budget of two minutes: one may begin among them.
  for (let count = 0; count < 64; count += 1) {
    const { address: from } = privateKeyToAccount(generatePrivateKey());
    forged.push((await buyer.payFor(`${url}/paid`, { authorization: { from } })).headers);
  }
  const answers = await Promise.all(
    forged.map(async (headers) => {
      const answer = await supertest(url).get("/paid").set(headers);
      const retryAfter = Number(answer.get("Retry-After") ?? 0);
      return { status: answer.status, error: answer.body.error, retryAfter };
    }),
  );
  const limited = answers.filter(({ status }) => status !== 402);
  expect(limited.length).toBeGreaterThan(0);
  for (const answer of limited) {
    expect(answer).toMatchObject({ status: 503, error: "caller_limited" });
    expect(answer.retryAfter).toBeGreaterThan(0);
  }
  expect(errors).toEqual([]);
  const scrape = await facilitator.metrics.metrics();
  expect(scrape).toContain('reason="caller_limited"');
  expect(scrape).not.toContain('reason="facilitator_unavailable"');
});
