import { createHash } from "node:crypto";
import {
  type ChannelFixture,
  channelEventsOf,
  createChannelFixture,
  type Devnet,
  type Listening,
  listen,
  placeChannels,
  startDevnet,
} from "@coinslot/devnet";
import { runFacilitatorService } from "@coinslot/hosting";
import { type ChannelConfig, channelContracts, channelScheme } from "@coinslot/protocol";
import { x402Client } from "@x402/core/client";
import { HTTPFacilitatorClient } from "@x402/core/server";
import { BatchSettlementEvmScheme as ClientScheme } from "@x402/evm/batch-settlement/client";
import { BatchSettlementEvmScheme as ServerScheme } from "@x402/evm/batch-settlement/server";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
import { wrapFetchWithPayment } from "@x402/fetch";
import express from "express";
import { zeroHash } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { balanceOf } from "../support/balance.ts";

const price = 1_000n;
const keys = { shop: "a-key-that-only-this-shop-has", kiosk: "a-key-of-another-seller-here" };

const ending = new AbortController();
let devnet: Devnet;
let channels: ChannelFixture;
let url: string;
let running: Promise<void>;

beforeAll(async () => {
  devnet = await startDevnet({ chainId: 9745 });
  await placeChannels(devnet);
  const { accounts } = devnet;
  await devnet.mint({ to: accounts.buyer.address, amount: 1_000_000n });
  channels = createChannelFixture(devnet);
  const entries = Object.entries(keys).map(
    ([name, key]) => `${name}:sha256:${createHash("sha256").update(key).digest("hex")}`,
  );
  const env = {
    COINSLOT_NETWORK: devnet.network,
    COINSLOT_RPC_URL: devnet.rpcUrl,
    COINSLOT_TOKENS: `${devnet.network}/${devnet.token}`,
    COINSLOT_LEDGER: "sqlite::memory:",
    FACILITATOR_PRIVATE_KEY: accounts.relayer.privateKey,
    FACILITATOR_PORT: "0",
    FACILITATOR_KEYS: entries.join(","),
    FACILITATOR_CHANNEL_RECEIVERS: `shop:${accounts.seller.address},kiosk:${accounts.relayer.address}`,
    FACILITATOR_CHANNEL_AUTHORIZER_PRIVATE_KEY: accounts.deployer.privateKey,
    FACILITATOR_LOG_LEVEL: "silent",
  };
  url = await new Promise<string>((resolve, reject) => {
    const onServing = (service: { url: string }) => resolve(service.url);
    running = runFacilitatorService({ env, signal: ending.signal, onServing });
    running.catch(reject);
  });
});

afterAll(async () => {
  ending.abort();
  await running;
  await devnet?.stop();
});

/** A seller with released packages only, by channels. Its own key signs, or the facilitator's. */
async function startSeller(options: {
  key: string;
  withdrawDelay: number;
  signsItself: boolean;
}): Promise<{ server: Listening; scheme: ServerScheme; facilitator: HTTPFacilitatorClient }> {
  const { network, token, accounts } = devnet;
  const { key, withdrawDelay, signsItself } = options;
  const headers = { Authorization: `Bearer ${key}` };
  const facilitator = new HTTPFacilitatorClient({
    url,
    createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
  });
  const { deployer } = accounts;
  const receiverAuthorizerSigner = {
    address: deployer.address,
    signTypedData: (data: unknown) =>
      deployer.signTypedData(data as Parameters<typeof deployer.signTypedData>[0]),
  };
  const scheme = new ServerScheme(accounts.seller.address, {
    withdrawDelay,
    ...(signsItself && { receiverAuthorizerSigner }),
  });
  const resources = new x402ResourceServer(facilitator).register(network, scheme);
  const accepts = {
    scheme: channelScheme,
    network,
    payTo: accounts.seller.address,
    price: { amount: `${price}`, asset: token, extra: { name: "USDT0", version: "1" } },
  };
  const app = express();
  app.use(paymentMiddleware({ "GET /weather": { accepts, description: "Weather" } }, resources));
  app.get("/weather", (_request, response) => void response.json({ forecast: "sun" }));
  return { server: await listen(app), scheme, facilitator };
}

/** The released client, of the devnet's buyer. */
function createBuyer(): { scheme: ClientScheme; pay: typeof fetch } {
  const { buyer } = devnet.accounts;
  const scheme = new ClientScheme({
    address: buyer.address,
    signTypedData: (data) => buyer.signTypedData(data as Parameters<typeof buyer.signTypedData>[0]),
    readContract: (call) =>
      devnet.client.readContract(call as Parameters<typeof devnet.client.readContract>[0]),
  });
  const client = new x402Client().setSpendControls(false).register(devnet.network, scheme);
  return { scheme, pay: wrapFetchWithPayment(fetch, client) };
}

function configOf(withdrawDelay: number): ChannelConfig {
  return channels.configOf({ salt: zeroHash, withdrawDelay });
}

async function eventsSince(block: bigint): Promise<string[]> {
  const { settlement: address } = channelContracts;
  const logs = await devnet.client.getLogs({ address, fromBlock: block });
  const later = logs.filter(({ blockNumber }) => blockNumber > block);
  return channelEventsOf({ logs: later }).map(({ eventName }) => eventName);
}

describe("the released @x402/evm server by channels, over the hosted facilitator", () => {
  it("finds channels in /supported, with the key that signs for it", async () => {
    const answer: unknown = await (await fetch(`${url}/supported`)).json();
    expect(answer).toMatchObject({
      kinds: expect.arrayContaining([
        {
          x402Version: 2,
          scheme: channelScheme,
          network: devnet.network,
          extra: { receiverAuthorizer: devnet.accounts.deployer.address.toLowerCase() },
        },
      ]),
    });
  });

  it.each([
    { signer: "the facilitator", signsItself: false, withdrawDelay: 2_001 },
    { signer: "the seller", signsItself: true, withdrawDelay: 2_002 },
  ])("sells, claims, settles and refunds, where $signer signs", async (options) => {
    const { network, token, accounts } = devnet;
    const config = configOf(options.withdrawDelay);
    const { server, scheme, facilitator } = await startSeller({ key: keys.shop, ...options });
    try {
      const since = await devnet.client.getBlockNumber();
      const before = await balanceOf(devnet, accounts.seller.address);
      const buyer = createBuyer();
      for (let count = 1; count <= 3; count += 1) {
        const answer = await buyer.pay(`${server.url}/weather`);
        expect(await answer.json()).toEqual({ forecast: "sun" });
      }
      const deposited = await channels.stateOf(config);
      expect(deposited.balance).toBeGreaterThanOrEqual(3n * price);
      expect(await eventsSince(since)).toEqual(["ChannelCreated", "Deposited"]);

      const manager = scheme.createChannelManager(facilitator, network, token);
      const [claim] = await manager.claim();
      expect(claim).toMatchObject({ vouchers: 1, transaction: expect.stringMatching(/^0x/) });
      expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: 3n * price });
      const { transaction } = await manager.settle();
      expect(transaction).toMatch(/^0x/);
      const income = (await balanceOf(devnet, accounts.seller.address)) - before;
      expect(income).toBe(3n * price);

      await buyer.pay(`${server.url}/weather`);
      const held = await balanceOf(devnet, accounts.buyer.address);
      const refund = await buyer.scheme.refund(`${server.url}/weather`);
      expect(refund).toMatchObject({ success: true });
      const back = (await balanceOf(devnet, accounts.buyer.address)) - held;
      expect(back).toBe(deposited.balance - 4n * price);
      expect(await channels.stateOf(config)).toMatchObject({
        balance: 4n * price,
        totalClaimed: 4n * price,
        refundNonce: 1n,
      });
      await manager.settle();
      expect((await balanceOf(devnet, accounts.seller.address)) - before).toBe(4n * price);
    } finally {
      await server.close();
    }
  });

  it("sells nothing to the key of another seller's receiver", async () => {
    const since = await devnet.client.getBlockNumber();
    const { server } = await startSeller({
      key: keys.kiosk,
      withdrawDelay: 2_003,
      signsItself: false,
    });
    try {
      const answer = await createBuyer().pay(`${server.url}/weather`);
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(await answer.text()).not.toContain("sun");
      expect(await eventsSince(since)).toEqual([]);
    } finally {
      await server.close();
    }
  });
});
