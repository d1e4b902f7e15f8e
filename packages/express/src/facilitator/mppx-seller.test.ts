import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type Devnet, listen, startDevnet } from "@coinslot/devnet";
import { createFacilitator } from "@coinslot/facilitator";
import { eip3009Abi, headerName, plasmaUsdt0 } from "@coinslot/protocol";
import express from "express";
import { Errors } from "mppx";
import { evm as evmOfClient, Mppx as MppxClient } from "mppx/client";
import { payment } from "mppx/express";
import { evm, Mppx } from "mppx/server";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createMppBuyer } from "../testing/mpp-buyer.ts";
import { facilitatorRouter } from "./facilitator-router.ts";

const price = 1000n;
const patience = { timeout: 20_000 };
let devnet: Devnet;
const opened: (() => Promise<void>)[] = [];

beforeAll(async () => {
  devnet = await startDevnet();
});

afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

afterAll(async () => {
  await devnet?.stop();
});

type Settle = NonNullable<Parameters<typeof evm.charge>[0]["settle"]>;

/** The settlement of docs/facilitator.md. */
function settleAt(url: string): Settle {
  return async ({ payload, request }) => {
    const { signature, from, to, value, validAfter, validBefore, nonce } = payload;
    const authorization = { from, to, value, validAfter, validBefore, nonce };
    const paymentRequirements = {
      scheme: "exact",
      network: `eip155:${request.methodDetails.chainId}`,
      amount: request.amount,
      asset: request.currency,
      payTo: request.recipient,
      maxTimeoutSeconds: 300,
      extra: { name: plasmaUsdt0.name, version: plasmaUsdt0.version },
    };
    const paymentPayload = {
      x402Version: 2,
      accepted: paymentRequirements,
      payload: { signature, authorization },
    };
    const body = JSON.stringify({ x402Version: 2, paymentPayload, paymentRequirements });
    const headers = { "Content-Type": "application/json", "Idempotency-Key": randomUUID() };
    for (;;) {
      const answer = await fetch(`${url}/settle`, { method: "POST", headers, body });
      const { success, transaction, errorReason } = JSON.parse(await answer.text());
      if (success) return { reference: transaction };
      const isOpen = answer.status === 503 || errorReason === "settlement_pending";
      if (!isOpen) throw new Errors.VerificationFailedError({ reason: errorReason });
      await sleep(1000 * Number(answer.headers.get("retry-after") ?? 2));
    }
  };
}

/** Sells by the reference's server, settled by our hosted facilitator. */
async function open({ settleTimeoutSeconds }: { settleTimeoutSeconds?: number } = {}) {
  const { network, rpcUrl, accounts } = devnet;
  const facilitator = createFacilitator({
    networks: [{ network, rpcUrls: [rpcUrl], relayer: accounts.relayer }],
    ledger: "sqlite::memory:",
    settleTimeoutSeconds,
  });
  opened.push(() => facilitator.close());
  await facilitator.ready();
  const settled: string[] = [];
  const hosted = await listen(
    express().use((request, response, next) => {
      if (request.path === "/settle") {
        const { json } = response;
        response.json = (body) => {
          settled.push(body.success ? "success" : body.errorReason);
          return json.call(response, body);
        };
      }
      next();
    }, facilitatorRouter(facilitator)),
  );
  opened.push(hosted.close);
  const recipient = privateKeyToAccount(generatePrivateKey()).address;
  const mppx = Mppx.create({
    secretKey: "a-secret-of-a-test-with-32-bytes",
    realm: "shop.example",
    methods: [
      evm.charge({
        authorization: { name: plasmaUsdt0.name, version: plasmaUsdt0.version },
        chainId: devnet.chainId,
        currency: devnet.token,
        decimals: 6,
        recipient,
        settle: settleAt(hosted.url),
      }),
    ],
  });
  let runs = 0;
  const app = express();
  app.get("/paid", payment(mppx.charge, { amount: "0.001" }), (_request, response) => {
    runs += 1;
    response.json({ content: "paid" });
  });
  const { url, close } = await listen(app);
  opened.push(close);
  const income = () =>
    devnet.client.readContract({
      address: devnet.token,
      abi: eip3009Abi,
      functionName: "balanceOf",
      args: [recipient],
    });
  return { url: `${url}/paid`, settled, runs: () => runs, income };
}

async function fundedAccount() {
  const account = privateKeyToAccount(generatePrivateKey());
  await devnet.mint({ to: account.address, amount: price });
  return account;
}

describe("a seller with the reference's server and our hosted facilitator", () => {
  it("sells to the reference's client", async () => {
    const shop = await open();
    const account = await fundedAccount();
    const client = MppxClient.create({
      polyfill: false,
      methods: [evmOfClient.charge({ account, authorization: plasmaUsdt0 })],
    });
    const answer = await client.fetch(shop.url);
    expect([answer.status, await answer.json()]).toEqual([200, { content: "paid" }]);
    expect(answer.headers.has(headerName.paymentReceipt)).toBe(true);
    expect(await shop.income()).toBe(price);
  });

  it("runs its handler once for a credential that comes again, and ten times at once", async () => {
    const shop = await open();
    const credential = await createMppBuyer(plasmaUsdt0, await fundedAccount()).payFor(shop.url);
    const ask = () => fetch(shop.url, { headers: { Authorization: credential } });
    const answers = await Promise.all(Array.from({ length: 10 }, ask));
    answers.push(await ask());
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(shop.settled.filter((settled) => settled === "success")).toHaveLength(1);
    expect(shop.settled).toContain("duplicate_settlement");
    expect(shop.runs()).toBe(1);
    expect(await shop.income()).toBe(price);
  });

  it("waits for a transaction that is pending, with the same key, and then delivers once", async () => {
    const shop = await open({ settleTimeoutSeconds: 0.1 });
    const credential = await createMppBuyer(plasmaUsdt0, await fundedAccount()).payFor(shop.url);
    await devnet.setAutomine(false);
    opened.push(() => devnet.setAutomine(true));
    const asked = fetch(shop.url, { headers: { Authorization: credential } });
    await expect.poll(() => shop.settled, patience).toContain("settlement_pending");
    await devnet.setAutomine(true);
    await devnet.mine(1);
    expect((await asked).status).toBe(200);
    expect([shop.settled.at(-1), shop.runs(), await shop.income()]).toEqual(["success", 1, price]);
  });
});
