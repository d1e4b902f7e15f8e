import { type Devnet, startDevnet } from "@coinslot/devnet";
import type { PaidIndexer } from "@coinslot/paid-indexer-app";
import { decodePaymentResponseHeader } from "@x402/fetch";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { balanceOf } from "../support/balance.ts";
import { priceOfData, startTestPaidIndexer } from "../support/paid-indexer.ts";
import { createReferenceFetch } from "../support/reference.ts";

let devnet: Devnet;
let paidIndexer: PaidIndexer;

beforeAll(async () => {
  devnet = await startDevnet({ chainId: 9745 });
  const { buyer, others } = devnet.accounts;
  await devnet.mint({ to: buyer.address, amount: 1_000_000n });
  for (const { address } of others.slice(0, 2)) await devnet.mint({ to: address, amount: 7n });
  paidIndexer = await startTestPaidIndexer(devnet);
});

afterAll(async () => {
  await paidIndexer?.stop();
  await devnet?.stop();
});

/** Buys with the reference implementation's fetch; returns the answer and the amount moved. */
async function buy(path: string, init?: RequestInit) {
  const { buyer, seller } = devnet.accounts;
  const before = await balanceOf(devnet, seller.address);
  const response = await createReferenceFetch(devnet, buyer)(`${paidIndexer.url}${path}`, init);
  const receipt = response.headers.get("PAYMENT-RESPONSE");
  return {
    status: response.status,
    body: await response.json(),
    receipt: receipt === null ? undefined : decodePaymentResponseHeader(receipt),
    cost: (await balanceOf(devnet, seller.address)) - before,
  };
}

describe("@x402/fetch", () => {
  it("buys a history of transfers, and a balance, from the paid indexer", async () => {
    const [{ address = "" } = {}] = devnet.accounts.others;
    const owner = `/api/v1/plasma/usdt/${address}`;
    const settled = { success: true, network: devnet.network };

    const transfers = await buy(`${owner}/token-transfers?limit=5`);
    expect(transfers).toMatchObject({ status: 200, receipt: settled, cost: priceOfData });
    expect(transfers.body).toMatchObject({
      transfers: [{ amount: "7", to: address.toLowerCase() }],
    });

    const balance = await buy(`${owner}/token-balances`);
    expect(balance).toMatchObject({ status: 200, receipt: settled, cost: priceOfData });
    expect(balance.body).toEqual({
      tokenBalance: { blockchain: "plasma", token: "usdt", amount: "7" },
    });
  });

  it("buys a batch from the paid indexer, at the price of its items", async () => {
    const items = devnet.accounts.others
      .slice(0, 3)
      .map(({ address }) => ({ blockchain: "plasma", token: "usdt", address }));
    const batch = await buy("/api/v1/batch/token-balances", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(items),
    });
    expect(batch).toMatchObject({
      status: 200,
      receipt: { success: true },
      cost: 3n * priceOfData,
    });
    expect(batch.body).toMatchObject(
      ["7", "7", "0"].map((amount) => ({ tokenBalance: { amount } })),
    );
  });
});
