import { type Devnet, listen, startDevnet } from "@coinslot/devnet";
import { createFacilitator, type SettlementOptions } from "@coinslot/facilitator";
import {
  type Credential,
  eip3009Abi,
  encodeCredential,
  formatSource,
  type Hex,
  headerName,
  plasmaUsdt0,
  readAuthorizationPayload,
} from "@coinslot/protocol";
import express from "express";
import { evm, Mppx } from "mppx/client";
import supertest from "supertest";
import { type Address, parseEther, parseSignature, serializeSignature } from "viem";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { paymentMiddleware } from "../../index.ts";
import { fetchOffer, toHeaders } from "../../testing/buyer.ts";
import { challengesOf, createMppBuyer, fetchChallenges } from "../../testing/mpp-buyer.ts";

const price = 1000n;
const patience = { timeout: 20_000 };
const curveOrder = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
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

/** A seller with all three wires, and everything that its facilitator records. */
async function open(settings: SettlementOptions & { rpcUrl?: string } = {}) {
  const { rpcUrl = devnet.rpcUrl, ...settlement } = settings;
  const { network, token: asset, accounts } = devnet;
  const records: string[] = [];
  const record = (fields: object, message: string) => void records.push(write([message, fields]));
  const facilitator = createFacilitator({
    ...settlement,
    networks: [{ network, rpcUrls: [rpcUrl], relayer: accounts.relayer }],
    ledger: "sqlite::memory:",
    logger: { debug: record, info: record, warn: record, error: record },
  });
  opened.push(() => facilitator.close());
  facilitator.onEvent((event) => records.push(write(event)));
  const payTo = privateKeyToAccount(generatePrivateKey()).address;
  const cost = { amount: `${price}`, asset, extra: plasmaUsdt0 };
  const accepts = { scheme: "exact", network, payTo, price: cost } as const;
  const gate = paymentMiddleware({ "GET /paid": { accepts } }, facilitator, {
    mpp: true,
    onError: (error) => void records.push(write(error)),
  });
  let runs = 0;
  const app = express().use(gate);
  app.get("/paid", (_request, response) => {
    runs += 1;
    response.json({ content: "paid" });
  });
  await gate.ready();
  const { url, close } = await listen(app);
  opened.push(close);
  return {
    url: `${url}/paid`,
    facilitator,
    records,
    runs: () => runs,
    income: () => balanceOf(payTo),
  };
}

/** A record as text, with the members of errors. */
function write(value: unknown): string {
  return JSON.stringify(value, (_name, each: unknown) => {
    if (typeof each === "bigint") return `${each}`;
    if (!(each instanceof Error)) return each;
    return { ...each, stack: each.stack, cause: each.cause };
  });
}

function balanceOf(account: Address): Promise<bigint> {
  return devnet.client.readContract({
    address: devnet.token,
    abi: eip3009Abi,
    functionName: "balanceOf",
    args: [account],
  });
}

async function fundedAccount(purchases = 1) {
  const account = privateKeyToAccount(generatePrivateKey());
  await devnet.mint({ to: account.address, amount: price * BigInt(purchases) });
  return account;
}

/** The reference's client, and what it has signed. */
async function openReference(purchases = 1) {
  const account = await fundedAccount(purchases);
  const client = Mppx.create({
    polyfill: false,
    methods: [evm.charge({ account, authorization: plasmaUsdt0 })],
  });
  const signed: string[] = [];
  client.onCredentialCreated(({ credential }) => void signed.push(credential));
  return { fetch: client.fetch, signed };
}

async function credentialFor(
  url: string,
  changes: Parameters<ReturnType<typeof createMppBuyer>["answer"]>[1] = {},
  account?: PrivateKeyAccount,
): Promise<Credential> {
  const [challenge] = await fetchChallenges(url);
  if (challenge === undefined) throw new Error("No challenge");
  return createMppBuyer(plasmaUsdt0, account ?? (await fundedAccount())).answer(challenge, changes);
}

function byMpp(credential: Credential): Record<string, string> {
  return { [headerName.authorization]: encodeCredential(credential) };
}

/** The authorization of a credential as a payment of x402. */
async function byX402(
  version: 1 | 2,
  url: string,
  credential: Credential,
): Promise<Record<string, string>> {
  const [offered] = (await fetchOffer(url, version)).accepts;
  const payload = readAuthorizationPayload(credential);
  if (offered === undefined || payload === undefined) throw new Error("No offer");
  return offered.x402Version === 2
    ? toHeaders({ x402Version: 2, accepted: offered.accepted, payload }).headers
    : toHeaders({
        x402Version: 1,
        scheme: offered.requirements.scheme,
        network: offered.networkName,
        payload,
      }).headers;
}

describe("the reference's client on a chain", () => {
  it("buys twenty times at once with one wallet, and signs once for each", async () => {
    const shop = await open();
    const buyer = await openReference(20);
    const answers = await Promise.all(Array.from({ length: 20 }, () => buyer.fetch(shop.url)));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
    expect(buyer.signed).toHaveLength(20);
    expect(await shop.income()).toBe(20n * price);
  });

  it("signs once where the transaction waits for its block, and its credential then buys", async () => {
    const shop = await open({ settleTimeoutSeconds: 1 });
    const buyer = await openReference();
    await devnet.setAutomine(false);
    opened.push(() => devnet.setAutomine(true));
    const answer = await buyer.fetch(shop.url);
    expect([answer.status, answer.headers.get(headerName.authenticate)]).toEqual([503, null]);
    await devnet.setAutomine(true);
    await devnet.mine(1);
    await expectToBuy(shop, buyer.signed);
  });

  it("signs once where the relayer has no gas money, and its credential then buys", async () => {
    const { address } = devnet.accounts.relayer;
    const shop = await open({ settleTimeoutSeconds: 1 });
    const buyer = await openReference();
    await devnet.client.setBalance({ address, value: 0n });
    const refill = () => devnet.client.setBalance({ address, value: parseEther("10") });
    opened.push(refill);
    const answer = await buyer.fetch(shop.url);
    expect([answer.status, answer.headers.get(headerName.authenticate)]).toEqual([503, null]);
    await refill();
    await expectToBuy(shop, buyer.signed);
  });

  it("signs once where the chain cannot be reached, and its credential then buys", async () => {
    let isDown = false;
    const node = await listen(
      express().post("/", express.text({ type: "*/*" }), async (request, response) => {
        if (isDown) return void response.destroy();
        const headers = { "content-type": "application/json" };
        const asked = { method: "POST", headers, body: String(request.body) };
        response.type("json").send(await (await fetch(devnet.rpcUrl, asked)).text());
      }),
    );
    opened.push(node.close);
    const shop = await open({ rpcUrl: node.url });
    const buyer = await openReference();
    isDown = true;
    const answer = await buyer.fetch(shop.url);
    expect([answer.status, answer.headers.get(headerName.authenticate)]).toEqual([503, null]);
    expect(shop.runs()).toBe(0);
    isDown = false;
    await expectToBuy(shop, buyer.signed);
  });

  async function expectToBuy(
    shop: Pick<Awaited<ReturnType<typeof open>>, "url" | "income">,
    signed: readonly string[],
  ) {
    expect(signed).toHaveLength(1);
    const headers = { [headerName.authorization]: signed[0] ?? "" };
    await expect.poll(async () => (await fetch(shop.url, { headers })).status, patience).toBe(200);
    expect(await shop.income()).toBe(price);
  }
});

describe("one authorization by all wires at once", () => {
  it.each([
    ["mpp", "x402v1", "x402v2"],
    ["mpp", "x402v2", "x402v1"],
    ["x402v1", "mpp", "x402v2"],
    ["x402v1", "x402v2", "mpp"],
    ["x402v2", "mpp", "x402v1"],
    ["x402v2", "x402v1", "mpp"],
  ] as const)("is settled and delivered once: %s, %s, %s", async (...order) => {
    const shop = await open();
    const credential = await credentialFor(shop.url);
    const headers = {
      mpp: byMpp(credential),
      x402v1: await byX402(1, shop.url, credential),
      x402v2: await byX402(2, shop.url, credential),
    };
    const answers = await Promise.all(
      order.map((wire) => fetch(shop.url, { headers: headers[wire] })),
    );
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses[0]).toBe(200);
    expect(statuses.slice(1).every((status) => status === 402 || status === 409)).toBe(true);
    expect(shop.runs()).toBe(1);
    expect(await shop.income()).toBe(price);
  });
});

describe("a clock of the buyer", () => {
  const hour = 3600n;

  it("a clock of the buyer that is fast makes an authorization that is not valid yet", async () => {
    const shop = await open();
    const credential = await credentialFor(shop.url, { validAfter: secondsNow() + hour });
    const answer = await supertest(shop.url).get("").set(byMpp(credential)).expect(402);
    expect(answer.body.type).toBe("https://paymentauth.org/problems/payment-expired");
    expect(challengesOf(answer.get(headerName.authenticate))).toHaveLength(1);
    expect(shop.runs()).toBe(0);
  });

  it("a clock of the buyer that is slow makes an authorization that has expired", async () => {
    const shop = await open();
    const credential = await credentialFor(shop.url, { validBefore: secondsNow() - hour });
    const answer = await supertest(shop.url).get("").set(byMpp(credential)).expect(402);
    expect(answer.body.type).toBe("https://paymentauth.org/problems/payment-expired");
    expect(shop.runs()).toBe(0);
  });

  it("may end an authorization before its challenge", async () => {
    const shop = await open();
    const validBefore = secondsNow() + 200n;
    await supertest(shop.url)
      .get("")
      .set(byMpp(await credentialFor(shop.url, { validBefore })))
      .expect(200);
  });

  function secondsNow(): bigint {
    return BigInt(Math.floor(Date.now() / 1000));
  }
});

describe("a signature of a credential", () => {
  it.each([
    ["with v as 0 or 1", toParity, 200],
    ["with a high s", toHighS, 402],
  ] as const)("%s is taken as by x402", async (_case, change, status) => {
    const shop = await open();
    const credential = await credentialFor(shop.url);
    const { payload } = credential;
    const paid = readAuthorizationPayload(credential);
    if (paid === undefined) throw new Error("No authorization");
    const changed = { ...credential, payload: { ...payload, signature: change(paid.signature) } };
    const sameByX402 = await credentialFor(shop.url);
    const other = readAuthorizationPayload(sameByX402);
    if (other === undefined) throw new Error("No authorization");
    const headers = await byX402(2, shop.url, {
      ...sameByX402,
      payload: { ...sameByX402.payload, signature: change(other.signature) },
    });
    expect((await fetch(shop.url, { headers })).status).toBe(status);
    expect((await fetch(shop.url, { headers: byMpp(changed) })).status).toBe(status);
    expect(shop.runs()).toBe(status === 200 ? 2 : 0);
  });

  it.each([
    ["honest", 200],
    ["refuses", 402],
  ] as const)(
    "a signature of a contract wallet that is honest or refuses: %s",
    async (answer, status) => {
      const shop = await open();
      const owner = await fundedAccount();
      const from = await devnet.deploySmartAccount({ owner: owner.address, answer });
      await devnet.mint({ to: from, amount: price });
      const [challenge] = await fetchChallenges(shop.url);
      if (challenge === undefined) throw new Error("No challenge");
      const signed = await createMppBuyer(plasmaUsdt0, owner).answer(challenge, { from });
      const credential = { ...signed, source: formatSource(devnet.network, from) };
      expect((await fetch(shop.url, { headers: byMpp(credential) })).status).toBe(status);
      expect(await shop.income()).toBe(status === 200 ? price : 0n);
    },
  );

  function toParity(signature: Hex): Hex {
    return `0x${signature.slice(2, 130)}0${parseSignature(signature).yParity}`;
  }

  function toHighS(signature: Hex): Hex {
    const { r, s, yParity } = parseSignature(signature);
    const twin: Hex = `0x${(curveOrder - BigInt(s)).toString(16).padStart(64, "0")}`;
    return serializeSignature({ r, s: twin, yParity: 1 - yParity });
  }
});

it("no log, metric, event, error or answer holds a credential, its signature, or the secret of its id", async () => {
  const shop = await open();
  const good = await credentialFor(shop.url);
  const victim = await fundedAccount();
  const forged = {
    ...(await credentialFor(shop.url, { from: victim.address })),
    source: formatSource(devnet.network, victim.address),
  };
  const empty = await credentialFor(shop.url, {}, await fundedAccount(0));
  const ofContract = await credentialFor(shop.url, { from: devnet.token });
  const expired = await credentialFor(shop.url, { validBefore: 1n });
  const ofOtherType = { ...good, payload: { type: "hash" } };
  const texts: string[] = [];
  const errors: unknown[] = [];
  for (const credential of [good, good, forged, empty, ofContract, expired, ofOtherType]) {
    const answer = await fetch(shop.url, { headers: byMpp(credential) });
    const text = await answer.text();
    texts.push(text, write([...answer.headers]));
    errors.push(answer.ok ? undefined : JSON.parse(text).error);
  }
  expect(errors.slice(0, 4)).toEqual([
    undefined,
    "invalid_exact_evm_nonce_already_used",
    "invalid_exact_evm_signature",
    "invalid_exact_evm_insufficient_balance",
  ]);
  texts.push(...shop.records, await shop.facilitator.metrics.metrics());
  const secret = await shop.facilitator.challengeSecret?.();
  if (secret === undefined) throw new Error("No secret");
  const told = texts.join("\n").toLowerCase();
  expect(shop.records.length).toBeGreaterThan(0);
  for (const credential of [good, forged, empty, ofContract, expired]) {
    const encoded = encodeCredential(credential).slice("Payment ".length);
    const signature = String(credential.payload.signature);
    for (const text of [encoded.slice(0, 80), signature.slice(2), credential.challenge.id]) {
      expect(told).not.toContain(text.toLowerCase());
    }
  }
  expect(told).not.toContain(secret.toLowerCase());
});
