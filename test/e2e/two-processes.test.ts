import { request } from "node:http";
import { text } from "node:stream/consumers";
import { createPayingFetch, receiptOf } from "@coinslot/client";
import { createTestDatabase, type DevAccount, type Devnet, startDevnet } from "@coinslot/devnet";
import { useProgram } from "@coinslot/devnet/use-program";
import { decodePaymentV2, encodePaymentPayload } from "@coinslot/protocol";
import { parseAbiItem } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Balancer, startBalancer } from "../../scripts/balance/round-robin.ts";
import { balanceOf } from "../support/balance.ts";
import { priceOfData, untilIndexed } from "../support/paid-indexer.ts";
import {
  type SellerProgram,
  sellerProgram,
  startSellerProgram,
} from "../support/seller-program.ts";

// The same program twice, on one PostgreSQL, behind a load balancer that knows nothing of payments.
const program = useProgram(sellerProgram);
let devnet: Devnet;
let sellers: readonly SellerProgram[] = [];
let balancer: Balancer;
let dropDatabase: (() => Promise<void>) | undefined;

beforeAll(async () => {
  const [chain, database] = await Promise.all([
    startDevnet({ chainId: 9745 }),
    createTestDatabase(),
  ]);
  devnet = chain;
  dropDatabase = database.drop;
  const { seller, relayer, buyer, others } = devnet.accounts;
  for (const { address } of [buyer, ...others.slice(0, 1)]) {
    await devnet.mint({ to: address, amount: 1_000_000n });
  }
  const environment = {
    COINSLOT_NETWORK: devnet.network,
    COINSLOT_RPC_URL: devnet.rpcUrl,
    COINSLOT_LEDGER: database.url,
    FACILITATOR_PRIVATE_KEY: relayer.privateKey,
    PAY_TO: seller.address,
    PAID_INDEXER_PORT: "0",
    INDEXER_CHAINS: "plasma",
    INDEXER_RPC_URLS_PLASMA: devnet.rpcUrl,
    INDEXER_DATABASE: database.url,
  };
  sellers = await Promise.all([
    startSellerProgram(program(), environment),
    startSellerProgram(program(), environment),
  ]);
  balancer = await startBalancer({ port: 0, backends: sellers.map(({ port }) => port) });
  await untilIndexed(balancer.url);
});

afterAll(async () => {
  await balancer?.close();
  await Promise.all(sellers.map((seller) => seller.kill()));
  await dropDatabase?.();
  await devnet?.stop();
});

function balancePath(account: string): string {
  return `/api/v1/plasma/usdt/${account}/token-balances`;
}

/** A request on a connection of its own, and so by the other process than the previous one. */
async function send(path: string, headers: Record<string, string> = {}) {
  const sent = request(`${balancer.url}${path}`, { agent: false, headers });
  const answered = new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
    sent.on("error", reject);
    sent.on("response", (response) => {
      text(response).then((body) => resolve({ status: response.statusCode, body }), reject);
    });
  });
  sent.end();
  return answered;
}

/** Signs a payment for a request, without a key of the buyer's, and sends nothing. */
async function sign(account: DevAccount, path: string): Promise<string> {
  let payment = "";
  const pay = createPayingFetch({
    account,
    rpcUrls: { [devnet.network]: devnet.rpcUrl },
    async fetch(input, init) {
      const signed = new Request(input, init).headers.get("PAYMENT-SIGNATURE");
      if (signed === null) return fetch(input, init);
      payment = signed;
      return new Response(null, { status: 402 });
    },
  });
  await pay(`${balancer.url}${path}`);
  return encodePaymentPayload({ ...decodePaymentV2(payment), extensions: undefined });
}

/** Amount that the seller has been paid, and its number of transfers. */
async function takings() {
  const { client, token, accounts } = devnet;
  const logs = await client.getLogs({
    address: token,
    event: parseAbiItem("event Transfer(address indexed from, address indexed to, uint256 value)"),
    args: { to: accounts.seller.address },
    fromBlock: 0n,
  });
  return { amount: await balanceOf(devnet, accounts.seller.address), transfers: logs.length };
}

/** The payments accepted since. */
async function takenSince(before: Awaited<ReturnType<typeof takings>>) {
  const now = await takings();
  return { amount: now.amount - before.amount, transfers: now.transfers - before.transfers };
}

describe("two processes of one seller", () => {
  it("two processes of one seller both sell", async () => {
    const path = balancePath(devnet.accounts.buyer.address);
    for (let count = 0; count < 4; count += 1) {
      const headers = { "PAYMENT-SIGNATURE": await sign(devnet.accounts.buyer, path) };
      expect(await send(path, headers)).toMatchObject({ status: 200 });
    }
    for (const seller of sellers) expect(seller.log()).toContain('"msg":"Sold"');
  });

  it("serve and settle a payment once that both receive at the same time", async () => {
    const path = balancePath(devnet.accounts.buyer.address);
    const before = await takings();
    for (let round = 0; round < 5; round += 1) {
      const headers = { "PAYMENT-SIGNATURE": await sign(devnet.accounts.buyer, path) };
      const answers = await Promise.all([1, 2, 3, 4].map(() => send(path, headers)));
      // And not later, at either.
      answers.push(await send(path, headers), await send(path, headers));
      const statuses = answers.map(({ status }) => status);
      expect(statuses.filter((status) => status === 200)).toHaveLength(1);
      expect(statuses.filter((status) => status === 402 || status === 409)).toHaveLength(5);
    }
    expect(await takenSince(before)).toEqual({ amount: 5n * priceOfData, transfers: 5 });
  });

  it("return a lost answer again, at either process, for the same money", async () => {
    const path = balancePath(devnet.accounts.buyer.address);
    const before = await takings();
    const headers = {
      "PAYMENT-SIGNATURE": await sign(devnet.accounts.buyer, path),
      "Idempotency-Key": "a key of sixteen characters, or more",
    };
    const first = await send(path, headers);
    expect(first.status).toBe(200);
    // For a moment the first may still be on its way: 409.
    for (let count = 0; count < 2; count += 1) {
      await expect.poll(() => send(path, headers)).toEqual(first);
    }
    expect(await takenSince(before)).toEqual({ amount: priceOfData, transfers: 1 });
  });

  it("count a payer's free runs together", async () => {
    const [payer] = devnet.accounts.others;
    if (payer === undefined) throw new Error("The devnet has no other account.");
    const path = balancePath("0x12");
    const before = await takings();
    const statuses: (number | undefined)[] = [];
    for (let count = 0; count < 22; count += 1) {
      const headers = { "PAYMENT-SIGNATURE": await sign(payer, path) };
      statuses.push((await send(path, headers)).status);
    }
    // Twenty in a minute, ten at each; then neither works for this payer.
    expect(statuses).toEqual([...Array.from({ length: 20 }, () => 400), 429, 429]);
    expect(await takenSince(before)).toEqual({ amount: 0n, transfers: 0 });
  });

  it("continue with one when the other dies, including the settling one", async () => {
    const settling = sellers.find((seller) => seller.log().includes('"msg":"relayer taken"'));
    await settling?.kill();
    const before = await takings();
    const pay = createPayingFetch({
      account: devnet.accounts.buyer,
      rpcUrls: { [devnet.network]: devnet.rpcUrl },
    });
    for (let count = 0; count < 3; count += 1) {
      const response = await pay(`${balancer.url}${balancePath(devnet.accounts.buyer.address)}`);
      expect(response.status).toBe(200);
      expect(receiptOf(response)?.success).toBe(true);
    }
    expect(await takenSince(before)).toEqual({ amount: 3n * priceOfData, transfers: 3 });
  });
});
