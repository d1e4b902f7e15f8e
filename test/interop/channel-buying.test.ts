import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  createPayingFetch,
  OutcomeUnclearError,
  type PayingFetch,
  receiptOf,
} from "@coinslot/client";
import { type Devnet, type Listening, listen, placeChannels, startDevnet } from "@coinslot/devnet";
import { createReferenceSigner } from "@coinslot/devnet/reference-facilitator";
import { supportedSchema } from "@coinslot/protocol";
import { x402Facilitator } from "@x402/core/facilitator";
import { type FacilitatorClient, x402ResourceServer } from "@x402/core/server";
import { BatchSettlementEvmScheme as ReferenceFacilitator } from "@x402/evm/batch-settlement/facilitator";
import { BatchSettlementEvmScheme as ReferenceServer } from "@x402/evm/batch-settlement/server";
import { paymentMiddleware } from "@x402/express";
import express from "express";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { balanceOf } from "../support/balance.ts";
import { priceOfWeather } from "../support/seller.ts";

let devnet: Devnet;
let folder: string;
let seller: ReferenceSeller;

beforeAll(async () => {
  devnet = await startDevnet({ chainId: 9745 });
  await placeChannels(devnet);
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
});
afterAll(() => devnet?.stop());
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "coinslot-channels-"));
  seller = await startReferenceSeller();
});
afterEach(async () => {
  await seller?.close();
  await rm(folder, { recursive: true, force: true });
});

interface ReferenceSeller extends Listening {
  runs(): number;
  scheme: ReferenceServer;
  facilitator: FacilitatorClient;
}

/** A seller of weather by channels, built of the released packages alone. */
async function startReferenceSeller(): Promise<ReferenceSeller> {
  const { network, token, accounts } = devnet;
  const reference = new x402Facilitator().register(
    network,
    new ReferenceFacilitator(createReferenceSigner(devnet, accounts.relayer)),
  );
  const facilitator: FacilitatorClient = {
    verify: (payload, requirements) => reference.verify(payload, requirements),
    settle: (payload, requirements) => reference.settle(payload, requirements),
    getSupported: async () => supportedSchema.parse(reference.getSupported()),
  };
  const { deployer } = accounts;
  const scheme = new ReferenceServer(accounts.seller.address, {
    withdrawDelay: 900,
    receiverAuthorizerSigner: {
      address: deployer.address,
      signTypedData: (data) =>
        deployer.signTypedData(data as Parameters<typeof deployer.signTypedData>[0]),
    },
  });
  const server = new x402ResourceServer(facilitator).register(network, scheme);
  const price = {
    amount: priceOfWeather.toString(),
    asset: token,
    extra: { name: "USDT0", version: "1" },
  };
  const accepts = { scheme: "batch-settlement", network, payTo: accounts.seller.address, price };
  let runs = 0;
  const app = express();
  app.use(paymentMiddleware({ "GET /weather": { accepts, description: "Weather" } }, server));
  app.get("/weather", (_request, response) => {
    runs += 1;
    response.json({ forecast: "sun", runs });
  });
  return { ...(await listen(app)), runs: () => runs, scheme, facilitator };
}

/** A new process of the same buyer, as far as it can be told from its file. */
function createBuyer(underlying: typeof fetch = fetch): PayingFetch {
  return createPayingFetch({
    account: devnet.accounts.buyer,
    rpcUrls: { [devnet.network]: devnet.rpcUrl },
    channels: { file: join(folder, "channels.db") },
    fetch: underlying,
  });
}

/** A network that loses the answers to paid requests while it is broken. */
function breakable(): { fetch: typeof fetch; isBroken: boolean; lost: number } {
  const self = {
    isBroken: false,
    lost: 0,
    fetch: async (...[input, init]: Parameters<typeof fetch>): Promise<Response> => {
      const response = await fetch(input, init);
      const isPaid = new Headers(init?.headers).has("payment-signature");
      if (!self.isBroken || !isPaid || !response.ok) return response;
      self.lost += 1;
      await response.text();
      throw new TypeError("The connection broke");
    },
  };
  return self;
}

const escrowed = async (pay: PayingFetch) => (await pay.listChannels())[0];
const buyerHas = () => balanceOf(devnet, devnet.accounts.buyer.address);

describe("our client at the reference's server, by a channel", () => {
  it("opens it by one deposit, buys many times, restarts, and the seller claims it all", async () => {
    const before = await buyerHas();
    for (let count = 1; count <= 8; count += 1) {
      const pay = createBuyer();
      const response = await pay(`${seller.url}/weather`);
      expect(await response.json()).toEqual({ forecast: "sun", runs: count });
      expect(receiptOf(response)).toMatchObject({ success: true, network: devnet.network });
    }
    expect(before - (await buyerHas())).toBe(10n * priceOfWeather);
    expect(await escrowed(createBuyer())).toMatchObject({
      charged: 8n * priceOfWeather,
      ceiling: 8n * priceOfWeather,
      locked: 2n * priceOfWeather,
    });

    const { network, token } = devnet;
    const income = () => balanceOf(devnet, devnet.accounts.seller.address);
    const earned = await income();
    const manager = seller.scheme.createChannelManager(seller.facilitator, network, token);
    await manager.claimAndSettle();
    expect((await income()) - earned).toBe(8n * priceOfWeather);
  });

  it("tops up when the deposit is used up", async () => {
    const pay = createBuyer();
    for (let count = 1; count <= 12; count += 1) {
      expect((await pay(`${seller.url}/weather`)).status).toBe(200);
    }
    expect(seller.runs()).toBe(12);
    expect(await escrowed(pay)).toMatchObject({
      charged: 12n * priceOfWeather,
      balance: 20n * priceOfWeather,
    });
  });

  it("is corrected after a lost answer, which costs one price and no more", async () => {
    const network = breakable();
    const pay = createBuyer(network.fetch);
    await pay(`${seller.url}/weather`);
    network.isBroken = true;
    // The reference keeps no answers: the same voucher again is corrected, and not served.
    await expect(pay(`${seller.url}/weather`)).rejects.toBeInstanceOf(OutcomeUnclearError);
    network.isBroken = false;
    expect(network.lost).toBe(1);
    expect(seller.runs()).toBe(2);
    const response = await pay(`${seller.url}/weather`);
    expect(await response.json()).toEqual({ forecast: "sun", runs: 3 });
    expect(await escrowed(pay)).toMatchObject({
      ceiling: 3n * priceOfWeather,
      charged: 3n * priceOfWeather,
    });
  });

  it("is corrected after its file was lost, and deposits nothing anew", async () => {
    await createBuyer()(`${seller.url}/weather`);
    await createBuyer()(`${seller.url}/weather`);
    const before = await buyerHas();
    for (const suffix of ["", "-wal", "-shm"]) {
      await rm(join(folder, `channels.db${suffix}`), { force: true });
    }
    const pay = createBuyer();
    expect((await pay(`${seller.url}/weather`)).status).toBe(200);
    expect(await buyerHas()).toBe(before);
    expect(await escrowed(pay)).toMatchObject({ charged: 3n * priceOfWeather });
  });

  it("gets a refund of what was not charged, and can buy again", async () => {
    const before = await buyerHas();
    const pay = createBuyer();
    await pay(`${seller.url}/weather`);
    await pay(`${seller.url}/weather`);
    expect(await pay.refundChannel(`${seller.url}/weather`)).toMatchObject([
      { state: "refunded", amount: 8n * priceOfWeather },
    ]);
    expect(before - (await buyerHas())).toBe(2n * priceOfWeather);
    expect((await pay(`${seller.url}/weather`)).status).toBe(200);
    expect(await escrowed(pay)).toMatchObject({ charged: 3n * priceOfWeather });
  });
});
