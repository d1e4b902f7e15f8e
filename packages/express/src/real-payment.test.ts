import { type Devnet, type Listening, listen, startDevnet } from "@coinslot/devnet";
import { createReferenceFacilitator } from "@coinslot/devnet/reference-facilitator";
import { createFacilitator, type SettlementOptions } from "@coinslot/facilitator";
import {
  type Address,
  decodeReceipt,
  eip3009Abi,
  type Facilitator,
  headerName,
} from "@coinslot/protocol";
import express, { type Express } from "express";
import supertest from "supertest";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type PaymentRoutes, paymentMiddleware } from "./index.ts";
import { type Buyer, createBuyer } from "./testing/buyer.ts";
import { expressVersions } from "./testing/express-versions.ts";

const price = 1000n;
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

function balanceOf(account: Address): Promise<bigint> {
  return devnet.client.readContract({
    address: devnet.token,
    abi: eip3009Abi,
    functionName: "balanceOf",
    args: [account],
  });
}

/** A recipient of this test's payments only. */
function freshAddress(): Address {
  return privateKeyToAccount(generatePrivateKey()).address;
}

async function fundedBuyer(amount = price): Promise<Buyer> {
  const buyer = createBuyer();
  await devnet.mint({ to: buyer.account.address, amount });
  return buyer;
}

function routesFor(payTo: Address): PaymentRoutes {
  const accepts = {
    scheme: "exact",
    network: devnet.network,
    payTo,
    price: {
      amount: price.toString(),
      asset: devnet.token,
      extra: { name: "USDT0", version: "1", decimals: 6 },
    },
  } as const;
  return { "GET /paid": { accepts }, "GET /upfront": { accepts, paymentFlow: "upfront" } };
}

function ownFacilitator(settings: SettlementOptions = {}) {
  const facilitator = createFacilitator({
    ...settings,
    networks: [
      { network: devnet.network, rpcUrls: [devnet.rpcUrl], relayer: devnet.accounts.relayer },
    ],
    ledger: "sqlite::memory:",
  });
  opened.push(() => facilitator.close());
  return facilitator;
}

async function open(config: {
  app?: Express;
  facilitator: Facilitator;
  handler?: express.RequestHandler;
}): Promise<Listening & { payTo: Address; runs(): number }> {
  const { app = express(), facilitator, handler } = config;
  const payTo = freshAddress();
  let runs = 0;
  const gate = paymentMiddleware(routesFor(payTo), facilitator);
  app.use(gate);
  app.get(["/paid", "/upfront"], (request, response, next) => {
    runs += 1;
    if (handler === undefined) response.json({ content: "secret" });
    else return handler(request, response, next);
  });
  await gate.ready();
  const listening = await listen(app);
  opened.push(listening.close);
  return { ...listening, payTo, runs: () => runs };
}

describe.each(expressVersions)("on $name, with our facilitator", ({ express: expressModule }) => {
  it.each([
    ["/paid", 1],
    ["/paid", 2],
    ["/upfront", 1],
    ["/upfront", 2],
  ] as const)("%s moves the money in version %i", async (path, version) => {
    const shop = await open({ app: expressModule(), facilitator: ownFacilitator() });
    const buyer = await fundedBuyer();
    const { headers } = await buyer.payFor(`${shop.url}${path}`, { version });
    const answer = await supertest(shop.url).get(path).set(headers).expect(200);
    expect(answer.body).toEqual({ content: "secret" });
    const name = version === 1 ? headerName.paymentResponseV1 : headerName.paymentResponse;
    const receipt = decodeReceipt(answer.get(name) ?? "");
    expect(receipt).toMatchObject({ success: true, network: devnet.network });
    expect(receipt.transaction).toMatch(/^0x[0-9a-f]{64}$/);
    expect(await balanceOf(shop.payTo)).toBe(price);
    expect(await balanceOf(buyer.account.address)).toBe(0n);
  });
});

it("an upfront handler that fails runs once more with our ledger, and then its payment is used up", async () => {
  const shop = await open({
    facilitator: ownFacilitator(),
    handler: (_request, response) => void response.status(500).end(),
  });
  const buyer = await fundedBuyer();
  const { headers } = await buyer.payFor(`${shop.url}/upfront`);
  const statuses: number[] = [];
  for (let time = 0; time < 2; time += 1) {
    statuses.push((await fetch(`${shop.url}/upfront`, { headers })).status);
  }
  const usedUp = await fetch(`${shop.url}/upfront`, { headers });
  expect([...statuses, usedUp.status]).toEqual([500, 500, 402]);
  expect(await usedUp.json()).toMatchObject({ error: "payment_used_up", charged: true });
  expect(decodeReceipt(usedUp.headers.get(headerName.paymentResponse) ?? "")).toMatchObject({
    success: true,
  });
  expect(shop.runs()).toBe(2);
  expect(await balanceOf(shop.payTo)).toBe(price);
});

it("a payment whose refund has begun runs no handler again, and buys nothing", async () => {
  const facilitator = ownFacilitator();
  const shop = await open({
    facilitator,
    handler: (_request, response) => void response.status(500).end(),
  });
  const buyer = await fundedBuyer();
  const { headers } = await buyer.payFor(`${shop.url}/upfront`);
  expect((await fetch(`${shop.url}/upfront`, { headers })).status).toBe(500);
  const { payments } = await facilitator.payments.list({ payer: buyer.account.address });
  const [payment] = payments;
  const inclusion = payment?.inclusion;
  await facilitator.refunds.create({ payment: payment?.id ?? "", idempotencyKey: "a" });
  const refunded = await fetch(`${shop.url}/upfront`, { headers });
  expect(refunded.status).toBe(402);
  expect(await refunded.json()).toMatchObject({
    error: "payment_refunded",
    transaction: inclusion?.transactionHash,
  });
  expect(shop.runs()).toBe(1);
});

describe.each([
  ["our facilitator", ownFacilitator],
  [
    "the reference's facilitator",
    () => createReferenceFacilitator(devnet, devnet.accounts.deployer),
  ],
] as const)("with %s", (_name, createOne) => {
  it("one authorization in ten concurrent requests runs one handler and moves the money once", async () => {
    const shop = await open({ facilitator: createOne() });
    const { headers } = await (await fundedBuyer(price * 10n)).payFor(`${shop.url}/paid`);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => fetch(`${shop.url}/paid`, { headers })),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.every(({ status }) => [200, 402, 409].includes(status))).toBe(true);
    await supertest(shop.url).get("/paid").set(headers).expect(402);
    expect(shop.runs()).toBe(1);
    expect(await balanceOf(shop.payTo)).toBe(price);
  });

  it("a payer that empties its account after verification gets nothing of the answer", async () => {
    const buyer = await fundedBuyer();
    await devnet.client.setBalance({ address: buyer.account.address, value: 10n ** 18n });
    const shop = await open({
      facilitator: createOne(),
      handler: async (_request, response) => {
        const hash = await devnet.client.writeContract({
          account: buyer.account,
          address: devnet.token,
          abi: transferAbi,
          functionName: "transfer",
          args: [devnet.accounts.deployer.address, price],
        });
        await devnet.client.waitForTransactionReceipt({ hash });
        response.cookie("secret", "1").set("X-Secret", "secret").send("secret");
      },
    });
    const { headers } = await buyer.payFor(`${shop.url}/paid`);
    const answer = await supertest(shop.url).get("/paid").set(headers).expect(402);
    expect(`${answer.text}${JSON.stringify(answer.headers)}`).not.toContain("secret");
    expect(shop.runs()).toBe(1);
    expect(await balanceOf(shop.payTo)).toBe(0n);
  });

  it("a failing handler costs nothing, and the same payment then buys", async () => {
    let fails = true;
    const shop = await open({
      facilitator: createOne(),
      handler: (_request, response) => {
        response.status(fails ? 500 : 200).send("answer");
      },
    });
    const { headers } = await (await fundedBuyer()).payFor(`${shop.url}/paid`);
    await supertest(shop.url).get("/paid").set(headers).expect(500);
    expect(await balanceOf(shop.payTo)).toBe(0n);
    fails = false;
    await supertest(shop.url).get("/paid").set(headers).expect(200);
    expect(await balanceOf(shop.payTo)).toBe(price);
  });
});

const transferAbi = [
  {
    type: "function",
    name: "transfer",
    stateMutability: "nonpayable",
    inputs: [
      { name: "to", type: "address" },
      { name: "value", type: "uint256" },
    ],
    outputs: [{ type: "bool" }],
  },
] as const;

describe("with our facilitator", () => {
  it("a balance for one payment buys one of two concurrent requests", async () => {
    const shop = await open({ facilitator: ownFacilitator() });
    const buyer = await fundedBuyer();
    const payments = await Promise.all([1, 2].map(() => buyer.payFor(`${shop.url}/paid`)));
    const answers = await Promise.all(
      payments.map(({ headers }) => fetch(`${shop.url}/paid`, { headers })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 402]);
    expect(shop.runs()).toBe(1);
    expect(await balanceOf(shop.payTo)).toBe(price);
  });

  it("a lost answer is delivered again for its key, and for no other", async () => {
    const shop = await open({ facilitator: ownFacilitator() });
    const { headers } = await (await fundedBuyer()).payFor(`${shop.url}/paid`);
    const withKey = { ...headers, [headerName.idempotencyKey]: "0123456789abcdef" };
    const first = await supertest(shop.url).get("/paid").set(withKey);
    const again = await supertest(shop.url).get("/paid").set(withKey);
    expect([first.status, again.status]).toEqual([200, 200]);
    expect(again.text).toBe(first.text);
    expect(again.get(headerName.paymentResponse)).toBe(first.get(headerName.paymentResponse));
    await supertest(shop.url).get("/paid").set(headers).expect(402);
    await supertest(shop.url).get("/paid?other").set(withKey).expect(409);
    expect(shop.runs()).toBe(1);
    expect(await balanceOf(shop.payTo)).toBe(price);
  });
});

it("a payer over its limit of free runs gets the true retry time, and no handler runs for it", async () => {
  const facilitator = ownFacilitator({ releaseLimit: { count: 2, windowSeconds: 600 } });
  const shop = await open({
    facilitator,
    handler: (_request, response) => void response.status(500).end(),
  });
  const buyer = await fundedBuyer();
  const startedAt = Date.now();
  for (const status of [500, 500, 429, 429]) {
    const { headers } = await buyer.payFor(`${shop.url}/paid`);
    const answer = await supertest(shop.url).get("/paid").set(headers).expect(status);
    if (status !== 429) continue;
    const passedSeconds = (Date.now() - startedAt) / 1000;
    const retryAfter = Number(answer.get("Retry-After"));
    expect(retryAfter).toBeLessThanOrEqual(600);
    expect(retryAfter).toBeGreaterThanOrEqual(600 - passedSeconds);
    expect(answer.body).toMatchObject({ error: "payer_limited" });
  }
  expect(shop.runs()).toBe(2);
  const other = await (await fundedBuyer()).payFor(`${shop.url}/paid`);
  await supertest(shop.url).get("/paid").set(other.headers).expect(500);
  expect(await balanceOf(shop.payTo)).toBe(0n);
});

it("an undelivered settled payment buys its original offer, although the price has risen", async () => {
  const ours = ownFacilitator();
  let isLost = true;
  const facilitator: Facilitator = {
    ...ours,
    async settle(...payment) {
      const settled = await ours.settle(...payment);
      if (isLost) throw new Error("The answer was lost");
      return settled;
    },
  };
  let amount = price;
  const payTo = freshAddress();
  const asked = () => ({
    amount: amount.toString(),
    asset: devnet.token,
    extra: { name: "USDT0", version: "1" },
  });
  const accepts = { scheme: "exact", network: devnet.network, payTo, price: asked } as const;
  const gate = paymentMiddleware({ "GET /paid": { accepts } }, facilitator);
  const app = express().use(gate);
  app.get("/paid", (request, response) => void response.send(request.payment?.amount));
  await gate.ready();
  const shop = await listen(app);
  opened.push(shop.close);

  const { headers } = await (await fundedBuyer()).payFor(`${shop.url}/paid`);
  await supertest(shop.url).get("/paid").set(headers).expect(503);
  isLost = false;
  amount = 5n * price;
  const delivered = await supertest(shop.url).get("/paid").set(headers);
  expect([delivered.status, delivered.text]).toEqual([200, price.toString()]);
  expect(await balanceOf(payTo)).toBe(price);
});

describe("a configuration by environment alone", () => {
  const saved = { ...process.env };

  afterEach(() => {
    process.env = { ...saved };
  });

  it("sells a route", async () => {
    Object.assign(process.env, {
      COINSLOT_NETWORK: devnet.network,
      COINSLOT_RPC_URL: devnet.rpcUrl,
      COINSLOT_LEDGER: "sqlite::memory:",
      FACILITATOR_PRIVATE_KEY: devnet.accounts.relayer.privateKey,
    });
    const payTo = freshAddress();
    const gate = paymentMiddleware(routesFor(payTo));
    opened.push(gate.close);
    const app = express().use(gate);
    app.get("/paid", (_request, response) => {
      response.send("content");
    });
    const shop = await listen(app);
    opened.push(shop.close);
    await gate.ready();
    const { headers } = await (await fundedBuyer()).payFor(`${shop.url}/paid`);
    await supertest(shop.url).get("/paid").set(headers).expect(200);
    expect(await balanceOf(payTo)).toBe(price);
  });
});

it("a payment without a key finds its answer under a new one: its handler runs once", async () => {
  const facilitator = ownFacilitator();
  let isLost = true;
  const shop = await open({
    facilitator: {
      ...facilitator,
      async settle(...request: Parameters<Facilitator["settle"]>) {
        const settled = await facilitator.settle(...request);
        if (isLost) throw new Error("The connection was lost");
        return settled;
      },
    },
  });
  const buyer = await fundedBuyer();
  const { headers } = await buyer.payFor(`${shop.url}/paid`);
  await supertest(shop.url).get("/paid").set(headers).expect(503);
  isLost = false;
  const withKey = { ...headers, [headerName.idempotencyKey]: "0123456789abcdef" };
  await supertest(shop.url).get("/paid").set(withKey).expect(200, { content: "secret" });
  expect(shop.runs()).toBe(1);
  await supertest(shop.url).get("/paid").set(headers).expect(402);
});

it("a route beside its handler is stopped by its name, and the others go on", async () => {
  const facilitator = ownFacilitator();
  const { accepts } = routesFor(freshAddress())["GET /paid"] ?? {};
  if (accepts === undefined) throw new Error("No route");
  const app = express();
  for (const path of ["/report", "/quote"]) {
    const gate = paymentMiddleware.route({ name: `GET ${path}`, accepts }, facilitator);
    app.get(path, gate, (_request, response) => void response.send("sold"));
    await gate.ready();
  }
  const { url, close } = await listen(app);
  opened.push(close);
  await facilitator.stops.set({ kind: "route", name: "GET /report" }, { reason: "no paper" });
  const buyer = await fundedBuyer();
  const report = await buyer.payFor(`${url}/report`);
  const refused = await supertest(url).get("/report").set(report.headers).expect(503);
  expect(refused.body).toMatchObject({ error: "payments_stopped", charged: false });
  const quote = await buyer.payFor(`${url}/quote`);
  await supertest(url).get("/quote").set(quote.headers).expect(200, "sold");
});
