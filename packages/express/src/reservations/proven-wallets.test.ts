import { type Devnet, listen, startDevnet } from "@coinslot/devnet";
import { createFacilitator } from "@coinslot/facilitator";
import { type Address, type Facilitator, FacilitatorError } from "@coinslot/protocol";
import express from "express";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createFacilitatorClient, facilitatorRouter, paymentMiddleware } from "../index.ts";
import { type Buyer, createBuyer } from "../testing/buyer.ts";

/** Timeout for conditions, on a busy machine. */
const patience = { timeout: 20_000 };
const owner = createBuyer();
const limitKey = "client";

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet();
});
afterAll(() => devnet?.stop());

function openFacilitator() {
  const { network, rpcUrl, accounts } = devnet;
  const facilitator = createFacilitator({
    networks: [{ network, rpcUrls: [rpcUrl], relayer: accounts.relayer }],
    ledger: "sqlite::memory:",
  });
  onTestFinished(() => facilitator.close());
  return facilitator;
}

/** A facilitator behind HTTP, whose callers all count as one. */
async function openRemoteFacilitator(): Promise<Facilitator> {
  const router = facilitatorRouter(openFacilitator(), {
    clientKey: () => limitKey,
    onError: () => undefined,
  });
  const { url, close } = await listen(express().use(router));
  onTestFinished(close);
  return createFacilitatorClient({ url });
}

async function deployWallet(): Promise<Address> {
  const wallet = await devnet.deploySmartAccount({ owner: owner.account.address });
  await devnet.mint({ to: wallet, amount: 50_000n });
  return wallet;
}

/** Price of all that is sold here. */
function priceOf({ token }: Devnet) {
  const extra = { name: "USDT0", version: "1", decimals: 6 };
  return { amount: "1000", asset: token, extra };
}

/** Payments of one client to the seller. */
function createClient(facilitator: Facilitator) {
  const { network, accounts } = devnet;
  const requirements = {
    scheme: "exact" as const,
    network,
    payTo: accounts.seller.address,
    maxTimeoutSeconds: 300,
    ...priceOf(devnet),
  };
  const sign = async (from: Address, buyer: Buyer) =>
    (await buyer.sign({ x402Version: 2, accepted: requirements, requirements }, { from })).payload;
  /** The verdict; `"limited"` where the budget is empty. */
  const verify = async (from: Address, buyer = owner) => {
    try {
      const payload = await sign(from, buyer);
      return (await facilitator.verify(payload, requirements, { limitKey })).isValid;
    } catch (error) {
      if (error instanceof FacilitatorError && error.isRetryable) return "limited";
      throw error;
    }
  };
  return {
    verify,
    settle: async (from: Address) =>
      facilitator.settle(await sign(from, owner), requirements, { limitKey }),
    /** Spends the budget of a minute, in the names of payers that do not exist. */
    async spendBudget() {
      for (let count = 0; count < 31; count += 1) {
        await verify(createBuyer().account.address, createBuyer());
      }
    },
  };
}

describe.each([
  ["in process", async () => openFacilitator()],
  ["over HTTP", openRemoteFacilitator],
])("a facilitator %s", (_where, open) => {
  it("verifies payments of a wallet that has paid through a caller beside that caller's forgeries", async () => {
    const client = createClient(await open());
    const [payer, stranger] = [await deployWallet(), await deployWallet()];
    expect(await client.settle(payer)).toMatchObject({ success: true });
    // A minute may end in between, and the budget with it.
    await expect
      .poll(async () => {
        await client.spendBudget();
        return client.verify(stranger);
      }, patience)
      .toBe("limited");
    expect(await client.verify(payer)).toBe(true);
  });

  it("gives a wallet with valid payments that were never settled no budget of its own", async () => {
    const client = createClient(await open());
    const wallet = await deployWallet();
    expect(await client.verify(wallet)).toBe(true);
    await expect
      .poll(async () => {
        await client.spendBudget();
        return client.verify(wallet);
      }, patience)
      .toBe("limited");
  });
});

describe("a shop with its own facilitator", () => {
  it("serves a wallet that has paid through a client beside that client's forgeries", async () => {
    const { network, accounts } = devnet;
    const accepts = {
      scheme: "exact",
      network,
      payTo: accounts.seller.address,
      price: priceOf(devnet),
    } as const;
    const gate = paymentMiddleware({ "/paid": { accepts } }, openFacilitator(), {
      clientKey: () => limitKey,
      onError: () => undefined,
    });
    const app = express().use(gate);
    app.use("/paid", (_request, response) => void response.send("sold"));
    await gate.ready();
    const { url, close } = await listen(app);
    onTestFinished(close);
    const buy = async (from: Address, buyer = owner) => {
      const { headers } = await buyer.payFor(`${url}/paid`, { authorization: { from } });
      return (await fetch(`${url}/paid`, { headers })).status;
    };

    const payer = await deployWallet();
    expect(await buy(payer)).toBe(200);
    // A minute may end in between, and the stranger of that round has paid then.
    await expect
      .poll(async () => {
        const stranger = await deployWallet();
        for (let count = 0; count < 31; count += 1) {
          await buy(createBuyer().account.address, createBuyer());
        }
        return buy(stranger);
      }, patience)
      .toBe(503);
    expect(await buy(payer)).toBe(200);
  });
});
