import { once } from "node:events";
import { request as openRequest } from "node:http";
import { type Devnet, listen, startDevnet } from "@coinslot/devnet";
import { createFacilitator } from "@coinslot/facilitator";
import express from "express";
import supertest from "supertest";
import { privateKeyToAccount } from "viem/accounts";
import { expect, onTestFinished, test } from "vitest";
import { paymentMiddleware } from "./index.ts";
import { createBuyer } from "./testing/buyer.ts";

/** A node that counts the calls that it forwards. */
async function countCalls(devnet: Devnet) {
  let calls = 0;
  const app = express().use(express.text({ type: "*/*", limit: "5mb" }));
  app.post("/", async (request, response) => {
    const asked: unknown = JSON.parse(request.body);
    calls += Array.isArray(asked) ? asked.length : 1;
    const headers = { "content-type": "application/json" };
    const answer = await fetch(devnet.rpcUrl, { method: "POST", headers, body: request.body });
    response.type("json").send(await answer.text());
  });
  const { url, close } = await listen(app);
  onTestFinished(close);
  return { url, calls: () => calls };
}

/** A shop for which every caller is one of its own, by `X-Forwarded-For`. */
async function openShop(devnet: Devnet, rpcUrl: string) {
  const { network, accounts } = devnet;
  const facilitator = createFacilitator({
    networks: [{ network, rpcUrls: [rpcUrl], relayer: accounts.relayer }],
    ledger: "sqlite::memory:",
  });
  onTestFinished(() => facilitator.close());
  const price = {
    amount: "1000",
    asset: devnet.token,
    extra: { name: "USDT0", version: "1", decimals: 6 },
  };
  const accepts = { scheme: "exact", network, payTo: accounts.seller.address, price } as const;
  const gate = paymentMiddleware({ "POST /paid": { accepts } }, facilitator);
  const app = express().set("trust proxy", 1).use(gate);
  app.post("/paid", (_request, response) => void response.send("sold"));
  await gate.ready();
  const { url, close } = await listen(app);
  onTestFinished(close);
  return `${url}/paid`;
}

/** A payment in the name of another payer than the key that signs it. */
async function forge(url: string, from: `0x${string}`) {
  const { headers } = await createBuyer().payFor(url, {
    init: { method: "POST" },
    authorization: { from },
  });
  return headers;
}

const victim = (n: number) =>
  privateKeyToAccount(`0x${(n + 1).toString(16).padStart(64, "5")}`).address;

test("forged payments of one caller cost few RPC calls, and delay no honest buyer", async () => {
  const devnet = await startDevnet();
  onTestFinished(() => devnet.stop());
  const node = await countCalls(devnet);
  const url = await openShop(devnet, node.url);
  const from = { "X-Forwarded-For": "203.0.113.9" };

  // One name: one call for its code. The body is not waited for.
  const named = await forge(url, victim(0));
  await supertest(url).post("").set(named).set(from).expect(402);
  const before = node.calls();
  const withheld = openRequest(url, {
    method: "POST",
    headers: { ...named, ...from, "Content-Length": "5" },
  });
  withheld.flushHeaders();
  const [answer] = await once(withheld, "response");
  expect(answer.statusCode).toBe(402);
  withheld.destroy();
  expect(node.calls()).toBe(before);

  // Ever new names: a call each, up to the budget of the caller, which gets a retry time.
  const forged = await Promise.all(Array.from({ length: 60 }, (_, n) => forge(url, victim(n + 1))));
  const answers = await Promise.all(
    forged.map((headers) => fetch(url, { method: "POST", headers: { ...headers, ...from } })),
  );
  const limited = answers.filter(({ status }) => status === 503);
  expect(limited.length).toBeGreaterThan(0);
  for (const { headers } of limited) {
    expect(Number(headers.get("Retry-After"))).toBeLessThanOrEqual(60);
  }
  // The budget of two minutes, if one began meanwhile; the rest is the facilitator's own.
  expect(answers.filter(({ status }) => status === 402).length).toBeLessThanOrEqual(60);

  // A key pays from the same address, and a forger at another address has its own budget.
  const buyer = createBuyer();
  await devnet.mint({ to: buyer.account.address, amount: 1_000n });
  const { headers } = await buyer.payFor(url, { init: { method: "POST" } });
  await supertest(url).post("").set(headers).set(from).expect(200);
  await supertest(url)
    .post("")
    .set({ ...(await forge(url, victim(99))), "X-Forwarded-For": "198.51.100.7" })
    .expect(402);
});
